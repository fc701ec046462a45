package otlp

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/cniscope/cniscope/pkg/queue"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/spelled"
)

func TestNoSecretThatThePeerWasSentLeaves(t *testing.T) {
	const token, basic, proxy = "Xq7CanaryTokenZ9t4421", "correct horse battery", "h4rd%2Fpass-phrase"
	t.Setenv("HTTPS_PROXY", "http://squid-user:"+proxy+"@10.1.2.3:3128")
	p := NewPeer("collector.example.com:4317", map[string]string{
		"authorization": "Bearer " + token, "x-basic": "Basic " + spelled.Base64("root:"+basic, "+/", true),
	})
	for way, spell := range spelled.Ways() {
		for _, secret := range []string{token, basic, "h4rd/pass-phrase", "squid-user:h4rd/pass-phrase"} {
			said := "invalid credentials [Bearer " + spell(secret) + "] for user"
			for _, err := range []error{
				errors.New("proxyconnect tcp: " + said), status.Error(codes.Unauthenticated,
					said), status.Error(codes.InvalidArgument, said),
				errors.New(p.Text(said)),
			} {
				if window, is := spelled.Seen(p.Error(err).Error(), way, secret); is {
					t.Errorf("%s: %q leaves in %q", way, window, p.Error(err))
				}
			}
		}
	}
}

// Operators need these texts, and doctor derives remedies from them.
func TestWhatFailedIsUnderstood(t *testing.T) {
	p := NewPeer("otel-collector.monitoring.svc:4317", map[string]string{"authorization": "Bearer Xq7CanaryTokenZ9t4421"})
	for _, said := range []string{
		`connection error: desc = "transport: Error while dialing: dial tcp 10.96.0.7:4317: connect: connection refused"`,
		`dial tcp: lookup otel-collector.monitoring.svc on 10.96.0.10:53: no such host`,
		`connection error: desc = "error reading server preface: http2: failed reading the frame payload: http2: frame too large, note that the frame header looked like an HTTP/1.1 header"`,
		`unexpected HTTP status code received from server: 404 (Not Found); transport: received unexpected content-type "text/plain; charset=utf-8"`,
		`connection error: desc = "transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate signed by unknown authority"`,
		`connection error: desc = "transport: authentication handshake failed: tls: first record does not look like a TLS handshake"`,
		`tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-11-25T23:24:33Z is after 2026-01-01T00:00:00Z`,
		`tls: failed to verify certificate: x509: certificate is valid for localhost, not otel-collector.monitoring.svc`,
		`grpc: received message larger than max (5242880 vs. 4194304)`,
		`context deadline exceeded while waiting for connections to become ready`,
		`upstream connect error or disconnect/reset before headers. reset reason: connection termination`,
		`invalid token`, `no org id`, `data refused due to high memory usage`, `sending queue is full`,
		`request had invalid authentication credentials`, `RATE_LIMITED: ingestion rate limit (local: 30000000 bytes) exceeded`,
	} {
		// Sizes have too many digits.
		want := strings.NewReplacer("5242880", "‹number 7›", "4194304", "‹number 7›", "30000000", "‹number 8›").Replace(said)
		harness.Equal(t, p.Text(said), want, said)
	}
}

func TestAStatusIsReadable(t *testing.T) {
	p := NewPeer("127.0.0.1:4317", nil)
	for said, want := range map[string]string{
		`connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:4317: connect: connection refused"`: "dial tcp 127.0.0.1:4317: connect: connection refused",
		`connection error: desc = "error reading server preface: EOF"`:                                                    "error reading server preface: EOF",
		"no org id": "no org id",
	} {
		err := p.Error(status.Error(codes.Unavailable, said))
		harness.Equal(t, err.Error(), "Unavailable: "+want)
		harness.Equal(t, status.Code(err), codes.Unavailable)
	}
}

func TestCodesHaveOneMeaning(t *testing.T) {
	p := NewPeer("127.0.0.1:4317", nil)
	const again, rejected, throttled = "again", "rejected", "throttled"
	meaning := func(err error) string {
		var r *queue.RejectedError
		var l *queue.ThrottledError
		switch err = p.Error(err); {
		case errors.As(err, &r):
			return rejected
		case errors.As(err, &l) && l.After == 5*time.Second:
			return throttled
		}
		return again
	}
	for code := range codes.Code(20) {
		if code == codes.OK {
			continue
		}
		want, slowed := again, throttled
		switch code {
		case codes.InvalidArgument, codes.Internal, codes.Unknown, codes.FailedPrecondition, codes.AlreadyExists:
			want, slowed = rejected, rejected
		case codes.ResourceExhausted:
			want = rejected
		}
		s := status.New(code, "no")
		pause := harness.Must(s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(5 * time.Second)}))(t)
		harness.Equal(t, meaning(s.Err()), want, code)
		harness.Equal(t, meaning(pause.Err()), slowed, code, "with a pause")
	}
}
