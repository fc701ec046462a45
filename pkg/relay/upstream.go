package relay

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cniscope/cniscope/pkg/queue"
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
			return &queue.RejectedError{Err: err}
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
		return &queue.RejectedError{Err: err}
	}
	return err
}
