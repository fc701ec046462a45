package relay

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/otlp"
	"github.com/cniscope/cniscope/pkg/queue"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/otlptest"
	"github.com/cniscope/cniscope/test/harness/spelled"
)

func send(t *testing.T, r *relaying, from, n int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		accepted(t, r.addr, encode(t, &tracepb.Span{Name: fmt.Sprint("span ", i)}))
	}
}

func TestADeadUpstreamHoldsNobodyBack(t *testing.T) {
	addr := harness.Address(t)
	r := start(t, Options{Bytes: 3000}, to(addr))
	send(t, r, 0, 100)
	s := r.Counts()
	if s.Received != 100 || s.Waiting == 0 || s.WaitingBytes > 3000 || s.Dropped[queue.Full] != 100-uint64(s.Waiting) {
		t.Errorf("%+v", s)
	}
	harness.Until(t, "it is tried again", func() bool { return r.Counts().Retries > 3 })

	c := otlptest.Collect(t, addr, &otlptest.Collector{})
	harness.Until(t, "what waited arrives", func() bool { return r.Counts().Waiting == 0 })
	var want []string
	for i := range s.Waiting {
		want = append(want, fmt.Sprint("span ", i))
	}
	if got := c.Got(); !slices.Equal(got, want) {
		t.Errorf("arrived: %v, want those that waited, in order: %v", got, want)
	}
}

// An upstream may repeat a header in any spelling.
func TestNoHeaderLeavesThroughTheUpstream(t *testing.T) {
	const token = "Xq7CanaryTokenZ9t4421"
	ways := slices.Sorted(maps.Keys(spelled.Ways()))
	said := map[string]string{}
	for _, way := range ways {
		said["["+way+"]"] = spelled.Ways()[way](token)
	}
	c := otlptest.Collect(t, "127.0.0.1:0", refusing(func(name string) error {
		return status.Error(codes.InvalidArgument, "invalid credentials ["+said[name]+"]")
	}))
	r := start(t, Options{}, &otlp.Options{Endpoint: c.Addr, Headers: map[string]string{"authorization": "Bearer " +
		token}})
	for _, way := range ways {
		before := r.Counts().Dropped[queue.Rejected]
		accepted(t, r.addr, encode(t, &tracepb.Span{Name: way}))
		harness.Until(t, "it is refused", func() bool { return r.Counts().Dropped[queue.Rejected] == before+1 })
		last := r.Counts().LastError
		if window, is := spelled.Seen(last, way, token); is {
			t.Errorf("%s: %q leaves in %q", way, window, last)
		}
		if !strings.Contains(last, "InvalidArgument") || !strings.Contains(last, "invalid credentials") {
			t.Errorf("%s: %q", way, last)
		}
	}
}

func TestTheUpstreamMayChange(t *testing.T) {
	r := start(t, Options{}, to(harness.Address(t)))
	send(t, r, 0, 1)
	harness.Until(t, "the first one fails", func() bool { return r.Counts().Retries > 0 })
	c := otlptest.Collect(t, "127.0.0.1:0", &otlptest.Collector{})
	harness.Check(t, r.SetUpstream(to(c.Addr)))
	harness.Until(t, "what waited goes to the second", func() bool { return r.Counts().Sent == 1 && len(c.Got()) == 1 })
	harness.Check(t, r.SetUpstream(nil))
	send(t, r, 1, 1)
	if s := r.Counts(); s.Unwanted != 1 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

func TestAnUpstreamThatSpeaksNoGRPCIsSaid(t *testing.T) {
	l := harness.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	s := &http.Server{Protocols: protocols, Handler: http.NotFoundHandler()}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	r := start(t, Options{}, to(l.Addr().String()))
	send(t, r, 0, 1)
	harness.Until(t, "the reason is known",
		func() bool { return strings.Contains(r.Counts().LastError, "404 (Not Found)") })
}

func TestCloseSendsWhatWaits(t *testing.T) {
	c := otlptest.Collect(t, "127.0.0.1:0", &otlptest.Collector{})
	for _, test := range []struct {
		upstream          *otlp.Options
		sent, undelivered int
	}{
		{to(c.Addr), 5, 0},
		{to(harness.Address(t)), 1, 1},
	} {
		var log strings.Builder
		r := harness.Must(New(Options{Listen: "127.0.0.1:0", Log: slog.New(slog.NewTextHandler(&log, nil))}))(t)
		harness.Check(t, r.SetUpstream(test.upstream))
		for i := range test.sent {
			harness.Check(t, r.receive(false, reads(encode(t, &tracepb.Span{Name: fmt.Sprint(i)}))))
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if test.undelivered > 0 {
			cancel()
		}
		if n := r.Close(ctx); n != test.undelivered || r.Counts().Dropped[queue.Closed] != uint64(n) {
			t.Errorf("%d were not delivered: %+v", n, r.Counts())
		}
		warned := strings.Contains(log.String(), "level=WARN msg=\"relayed containerd's spans\"")
		harness.Equal(t, warned, test.undelivered > 0, log.String())
		harness.Says(t, fmt.Sprint(r.Counts().Readings()), fmt.Sprintf(" %d [reason closed]", test.undelivered))
		cancel()
	}
	harness.Equal(t, len(c.Got()), 5, "operations that arrived")
}

func TestAnAddressThatIsTakenIsSaidOnceAndWhenItIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := harness.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
		r := harness.Must(New(Options{Listen: l.Addr().String(), Log: slog.New(slog.DiscardHandler)}))(t)
		defer r.Close(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		var said []string
		harness.Check(t, r.Run(ctx, func(e event.Event) {
			d := e.Body.(*event.Degraded)
			said = append(said, fmt.Sprint(d.Feature, " ", d.Restored))
			if d.Restored {
				cancel()
				return
			}
			time.AfterFunc(3*listenAgain/2, func() { l.Close() })
		}))
		harness.EqualSlices(t, said, []string{"relay false", "relay true"})
	})
}

func TestWhoTakesEventsMayBeSlow(t *testing.T) {
	r := harness.Must(New(Options{Listen: "127.0.0.1:0"}))(t)
	defer r.Close(t.Context())
	message := recorded(t, "containerd-2.3.7.pb")
	for range maxWaiting { // without a reader
		harness.Check(t, r.receive(false, reads(message)))
	}
	s := r.Counts()
	if s.Told <= maxWaiting || s.Unheard != s.Told-maxWaiting {
		t.Errorf("%+v", s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	told, lost := 0, uint64(0)
	harness.Check(t, r.Run(ctx, func(e event.Event) {
		switch b := e.Body.(type) {
		case *event.Above:
			told++
		case *event.Lost:
			lost += b.Count
			harness.Equal(t, b.Source+": "+b.Reason, "relay: queue full")
			cancel()
		}
	}))
	harness.Equal(t, told, maxWaiting, "told once there is a reader, also at the end")
	harness.Equal(t, lost, s.Unheard, "lost")
}

func reads(message []byte) func() ([]byte, error) {
	return func() ([]byte, error) { return message, nil }
}
