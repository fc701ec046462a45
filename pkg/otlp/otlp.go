// Package otlp sends spans over OTLP, classifies answers and redacts their text.
package otlp

import (
	"errors"
	"net"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cniscope/cniscope/pkg/queue"
	"github.com/cniscope/cniscope/pkg/redact"
)

// Peer is an endpoint, with the secrets sent to it or its proxy. One goroutine at a time may use it.
type Peer struct{ told *redact.Call }

// NewPeer returns a peer that gets these headers.
func NewPeer(hostPort string, headers map[string]string) Peer {
	var secrets []string
	for _, value := range headers {
		secrets = append(secrets, value)
	}
	p := Peer{redact.Ours(append(secrets, userInformation(httpproxy.FromEnvironment().HTTPSProxy)...)...)}
	host, _, _ := net.SplitHostPort(hostPort)
	p.told.Name(host, hostPort)
	return p
}

func userInformation(proxy string) []string {
	_, rest, found := strings.Cut(proxy, "://")
	if !found {
		rest = proxy
	}
	written := rest[:max(0, strings.LastIndexByte(rest, '@'))]
	sent, err := url.PathUnescape(written)
	if written == "" || err != nil {
		return []string{written}
	}
	user, password, _ := strings.Cut(sent, ":")
	return []string{written, sent, user, password}
}

// Text redacts a text that the peer sent.
func (p Peer) Text(s string) string { return p.told.Said(s) }

// Error returns a failed request as a redacted error of queue.Sender. OTLP (OTLP/gRPC response, "Failures") names the
// retryable codes. Other codes reject the spans, except those about endpoint or credentials: an operator can fix
// these.
func (p Peer) Error(err error) error {
	s, is := status.FromError(err)
	if !is {
		return errors.New(p.Text(err.Error()))
	}
	err = statusError{status.New(s.Code(), p.Text(s.Message()))}
	after, throttled := retryDelay(s)
	switch s.Code() {
	case codes.InvalidArgument, codes.Internal, codes.Unknown, codes.FailedPrecondition, codes.AlreadyExists:
		return &queue.RejectedError{Err: err}
	case codes.ResourceExhausted:
		if !throttled { // such as a message too large
			return &queue.RejectedError{Err: err}
		}
	}
	if throttled {
		return &queue.ThrottledError{Err: err, After: after}
	}
	return err
}

// statusError is a status without gRPC's "rpc error: code = Unavailable desc = connection error: desc = …".
type statusError struct{ *status.Status }

func (f statusError) GRPCStatus() *status.Status { return f.Status }

func (f statusError) Error() string {
	said := f.Message()
	if inner, is := strings.CutPrefix(said, `connection error: desc = "`); is {
		said = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(inner, `"`), "transport: "), "Error while dialing: ")
	}
	return f.Code().String() + ": " + said
}

func retryDelay(s *status.Status) (time.Duration, bool) {
	for _, d := range s.Details() {
		if r, ok := d.(*errdetails.RetryInfo); ok {
			return r.GetRetryDelay().AsDuration(), true
		}
	}
	return 0, false
}
