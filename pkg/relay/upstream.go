package relay

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cniscope/cniscope/pkg/text"
)

// Upstream is where requests go on to: an OTLP endpoint that speaks gRPC, whatever
// containerd spoke. The two protocols carry the same message, so only what is around it
// changes.
type Upstream struct {
	// Endpoint is host:port.
	Endpoint string
	// TLS is nil for plain text.
	TLS *tls.Config
	// Headers are sent with every request. They are secrets.
	Headers map[string]string
	// Timeout is for one request. 10 s.
	Timeout time.Duration
}

// way is an upstream with its connection.
type way struct {
	Upstream
	url    string
	client *http.Client
}

// newWay makes the way to an upstream, from a relay that listens on an address.
func newWay(u Upstream, listen string) *way {
	protocols := &http.Protocols{}
	t := &http.Transport{
		Protocols: protocols, TLSClientConfig: u.TLS, IdleConnTimeout: 2 * time.Minute,
		MaxResponseHeaderBytes: 64 << 10, DialContext: notTo(listen),
	}
	w := &way{Upstream: u, client: &http.Client{Transport: t}}
	if u.TLS == nil {
		protocols.SetUnencryptedHTTP2(true)
		w.url = "http://" + u.Endpoint + exportMethod
	} else {
		protocols.SetHTTP2(true)
		t.Proxy = http.ProxyFromEnvironment
		w.url = "https://" + u.Endpoint + exportMethod
	}
	orElse(&w.Timeout, 10*time.Second)
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

// refusedError says that the upstream does not take a request, now or later.
type refusedError struct{ error }

// send makes one gRPC call of a request. The error is a refusedError where trying again
// is of no use.
func (w *way) send(ctx context.Context, q request) (err error) {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	defer func() {
		if err != nil {
			// The connection may be one whose other end is gone without a word.
			w.client.CloseIdleConnections()
		}
	}()
	prefix := make([]byte, grpcPrefix)
	binary.BigEndian.PutUint32(prefix[1:], uint32(len(q.body)))
	if q.gzip {
		prefix[0] = 1
	}
	call, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, nil)
	if err != nil {
		return err
	}
	// Not ContentLength alone: a redirect or a connection that is closed needs the body
	// again.
	call.GetBody = func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(bytes.NewReader(prefix), bytes.NewReader(q.body))), nil
	}
	call.Body, _ = call.GetBody()
	call.ContentLength = int64(len(prefix) + len(q.body))
	for name, value := range w.Headers {
		call.Header.Set(name, value)
	}
	call.Header.Set("Content-Type", "application/grpc+proto")
	call.Header.Set("Te", "trailers")
	call.Header.Set("User-Agent", "cniscope")
	call.Header.Set(marker, "1")
	if q.gzip {
		call.Header.Set("Grpc-Encoding", "gzip")
	}
	answer, err := w.client.Do(call)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	// To its end: only then are the trailers there.
	if _, err := io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<20)); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return meaning(answer)
}

// meaning says what an answer means for the request.
func meaning(answer *http.Response) error {
	status, message := answer.Trailer.Get("Grpc-Status"), answer.Trailer.Get("Grpc-Message")
	if status == "" { // an answer without a message has it among the headers
		status, message = answer.Header.Get("Grpc-Status"), answer.Header.Get("Grpc-Message")
	}
	code, err := strconv.ParseUint(status, 10, 32)
	if err != nil {
		err := fmt.Errorf("the upstream answered HTTP %d and no gRPC status: it must speak OTLP over gRPC", answer.StatusCode)
		if answer.StatusCode == http.StatusRequestEntityTooLarge {
			return refusedError{err}
		}
		return err
	}
	err = errors.New(codes.Code(code).String() + ": " + text.Clean(message, text.Bound))
	switch codes.Code(code) {
	case codes.OK:
		return nil
	// About this request; everything else somebody mends, and then what waited is wanted.
	case codes.InvalidArgument, codes.Internal, codes.Unknown, codes.FailedPrecondition,
		codes.AlreadyExists, codes.ResourceExhausted, codes.OutOfRange, codes.DataLoss:
		return refusedError{err}
	}
	return err
}
