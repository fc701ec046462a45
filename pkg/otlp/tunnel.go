package otlp

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"golang.org/x/net/http/httpproxy"
	"google.golang.org/grpc"
)

// tunneled returns gRPC's target and options for any proxy. gRPC's own dialer waits for a proxy without a timeout,
// and reads its whole answer into memory.
func tunneled(endpoint string) (target string, through []grpc.DialOption) {
	through = []grpc.DialOption{grpc.WithNoProxy()}
	proxy, err := httpproxy.FromEnvironment().ProxyFunc()(&url.URL{Scheme: "https", Host: endpoint})
	if proxy == nil && err == nil {
		return endpoint, through
	}
	// The proxy resolves the name.
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		if err != nil {
			return nil, err
		}
		return tunnel(ctx, proxy, address)
	}
	return "passthrough:///" + endpoint, append(through, grpc.WithContextDialer(dial))
}

// tunnel connects through an HTTP proxy (RFC 9110, 9.3.6), until ctx ends.
func tunnel(ctx context.Context, proxy *url.URL, address string) (net.Conn, error) {
	at := proxy.Host
	if proxy.Port() == "" {
		at = net.JoinHostPort(proxy.Hostname(), "443")
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	err = connect(c, proxy.User, address)
	if !stop() {
		err = fmt.Errorf("the proxy does not answer: %w", context.Cause(ctx))
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func connect(c net.Conn, user *url.Userinfo, address string) error {
	request := &http.Request{
		Method: http.MethodConnect, URL: &url.URL{Host: address},
		Header: http.Header{"User-Agent": {"cniscope"}},
	}
	if user != nil {
		password, _ := user.Password()
		request.Header.Set("Proxy-Authorization",
			"Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	if err := request.Write(c); err != nil {
		return err
	}
	in := bufio.NewReader(io.LimitReader(c, maxAnswer))
	answer, err := http.ReadResponse(in, request)
	if err != nil {
		return fmt.Errorf("read the proxy's answer: %w", err)
	}
	defer answer.Body.Close() // empty for CONNECT: the connection stays
	switch {
	case answer.StatusCode != http.StatusOK:
		return errors.New("the proxy answered HTTP " + answer.Status)
	case in.Buffered() > 0: // the endpoint waits for a ClientHello
		return errors.New("the proxy sent more than its answer")
	}
	return nil
}
