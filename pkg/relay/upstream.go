package relay

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/otlp"
	"github.com/cniscope/cniscope/pkg/text"
)

// Upstream is where requests go on to: an OTLP endpoint that speaks gRPC, whatever containerd spoke. The
// two protocols carry the same message, so only what is around it changes.
type Upstream struct {
	// Endpoint is host:port.
	Endpoint string
	// TLS is nil for plain text.
	TLS *tls.Config
	// Headers are sent with every request. They are secrets.
	Headers map[string]string
	Timeout time.Duration // Timeout is for one request. 10 s.
}

type way struct {
	Upstream
	url    string
	client *http.Client
	peer   otlp.Peer
}

// newWay makes the way to an upstream, from a relay that listens on an address.
func newWay(u Upstream, listen string) *way {
	protocols := &http.Protocols{}
	t := &http.Transport{
		Protocols: protocols, TLSClientConfig: u.TLS, IdleConnTimeout: 2 * time.Minute,
		MaxResponseHeaderBytes: 64 << 10, DialContext: notTo(listen),
	}
	w := &way{Upstream: u, client: &http.Client{Transport: t}, peer: otlp.NewPeer(u.Endpoint, u.Headers)}
	if u.TLS == nil {
		protocols.SetUnencryptedHTTP2(true)
		w.url = "http://" + u.Endpoint + exportMethod
	} else {
		protocols.SetHTTP2(true)
		t.Proxy = http.ProxyFromEnvironment
		w.url = "https://" + u.Endpoint + exportMethod
	}
	w.Timeout = cmp.Or(w.Timeout, 10*time.Second)
	return w
}

// notTo dials everybody but the one who listens there: however it was written, and whatever a
// name meant at that moment.
func notTo(listen string) func(ctx context.Context, network, address string) (net.Conn, error) {
	self, _ := netip.ParseAddrPort(listen) // New has checked it
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if to := c.RemoteAddr().(*net.TCPAddr).AddrPort(); to.Port() == self.Port() && to.Addr().Unmap() == self.Addr().Unmap() {
			_ = c.Close()
			return nil, fmt.Errorf("%s is the relay itself: name the real endpoint in relay.upstream or export.otlp.endpoint", text.Clean(address, text.Bound))
		}
		return c, nil
	}
}

// Shutdown closes the connection.
func (w *way) Shutdown(context.Context) error {
	w.client.CloseIdleConnections()
	return nil
}

// Send makes one gRPC call: the relay's queue hands over one request at a time.
func (w *way) Send(ctx context.Context, requests [][]byte) (err error) {
	request := request(requests[0])
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	defer func() {
		if err != nil {
			// The connection may be one whose other end is gone without a word.
			w.client.CloseIdleConnections()
			err = w.peer.Error(err)
		}
	}()
	call, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(request))
	if err != nil {
		return err
	}
	for name, value := range w.Headers {
		call.Header.Set(name, value)
	}
	call.Header.Set("Content-Type", "application/grpc+proto")
	call.Header.Set("Te", "trailers")
	call.Header.Set("User-Agent", "cniscope")
	call.Header.Set(marker, "1")
	if request.packed() {
		call.Header.Set("Grpc-Encoding", "gzip")
	}
	answer, err := w.client.Do(call)
	if asked, is := errors.AsType[*url.Error](err); is {
		return asked.Err // without the URL, which the log names
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	// To its end: only then are the trailers there.
	if _, err := io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<20)); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return answered(answer)
}

// answered returns the gRPC status of an answer as an error; nil for OK.
func answered(answer *http.Response) error {
	from := answer.Trailer
	if from.Get("Grpc-Status") == "" { // an answer without a message has it among the headers
		from = answer.Header
	}
	code, err := strconv.ParseUint(from.Get("Grpc-Status"), 10, 32)
	if err != nil {
		code := codes.Unavailable
		if answer.StatusCode == http.StatusRequestEntityTooLarge {
			code = codes.InvalidArgument
		}
		return status.Errorf(code, "the upstream answered HTTP %d and no gRPC status: it must speak OTLP over gRPC", answer.StatusCode)
	}
	// Of the details only a pause counts, so those that cannot be read are left out.
	var said rpc.Status
	if details, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(from.Get("Grpc-Status-Details-Bin"), "=")); err == nil {
		_ = proto.Unmarshal(details, &said)
	}
	message := from.Get("Grpc-Message")
	if plain, err := url.PathUnescape(message); err == nil {
		message = plain
	}
	return status.FromProto(&rpc.Status{Code: int32(code), Message: message, Details: said.GetDetails()}).Err() //nolint:gosec // 32 bits
}
