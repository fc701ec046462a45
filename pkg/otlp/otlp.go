// Package otlp decides what the answer of an OTLP endpoint means for the sent spans, and which parts of its text
// may leave the node.
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

// Peer is an endpoint, with the secrets that it, or a proxy on the way, is sent. It is used by one goroutine at
// a time.
type Peer struct{ told *redact.Call }

// NewPeer returns the peer that answers at host:port and gets these headers.
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

// userInformation returns user and password of a proxy's URL, as they are written and as they are sent.
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

// Text returns the parts of a text of the peer that may leave.
func (p Peer) Text(s string) string { return p.told.Said(s) }

// Error returns the meaning of a failed request, as an error of queue.Sender whose text may leave.
//
// The OTLP specification (OTLP/gRPC response, "Failures") names the codes that may be retried. Of the other codes
// some are about the sent spans. The rest is about the endpoint or our credentials: an operator repairs those, and
// then the waiting spans are wanted.
func (p Peer) Error(err error) error {
	s, is := status.FromError(err)
	if !is {
		return errors.New(p.Text(err.Error()))
	}
	err = status.Error(s.Code(), p.Text(s.Message()))
	after, throttled := retryDelay(s)
	switch s.Code() {
	case codes.InvalidArgument, codes.Internal, codes.Unknown, codes.FailedPrecondition, codes.AlreadyExists:
		return &queue.RejectedError{Err: err}
	case codes.ResourceExhausted:
		if !throttled { // a message that is too large, for one
			return &queue.RejectedError{Err: err}
		}
	}
	if throttled {
		return &queue.ThrottledError{Err: err, After: after}
	}
	return err
}

func retryDelay(s *status.Status) (time.Duration, bool) {
	for _, d := range s.Details() {
		if r, ok := d.(*errdetails.RetryInfo); ok {
			return r.GetRetryDelay().AsDuration(), true
		}
	}
	return 0, false
}
