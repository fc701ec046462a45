package node

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/test/harness"
)

// told is what a story of events makes of an overload: its lines in the log.
func told(o *overload, story func(at func(time.Duration, event.Body))) (lines []string) {
	var log bytes.Buffer
	to := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}))
	o.log = to
	story(func(t time.Duration, b event.Body) { o.Event(event.Event{Time: int64(time.Hour + t), Body: b}) })
	for line := range strings.Lines(log.String()) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

func TestOverload(t *testing.T) {
	const begins = `msg="probe overloaded, affected calls are marked incomplete" `
	tick := func(lag time.Duration) *event.Tick { return &event.Tick{Lag: int64(lag)} }
	lost := func(source, reason string) *event.Lost { return &event.Lost{Source: source, Reason: reason, Count: 10} }
	for name, test := range map[string]struct {
		story func(at func(time.Duration, event.Body))
		want  string
		is    bool
	}{
		"ticks":         {func(at func(time.Duration, event.Body)) { at(0, tick(0)); at(time.Second, tick(0)) }, "", false},
		"a short lag":   {func(at func(time.Duration, event.Body)) { at(0, tick(100*time.Millisecond)) }, "", false},
		"what NRI lost": {func(at func(time.Duration, event.Body)) { at(0, lost("nri", "queue full")) }, "", false},
		"a lag":         {func(at func(time.Duration, event.Body)) { at(0, tick(400*time.Millisecond)) }, begins + `lag=400ms`, true},
		"one run has too much to tell, for three seconds": {
			func(at func(time.Duration, event.Body)) {
				for i := range 60 {
					now := time.Duration(i) * 50 * time.Millisecond
					at(now, lost("probe", "over quota"))
					at(now, tick(0))
				}
				at(3900*time.Millisecond, tick(0))
				at(3950*time.Millisecond, tick(0))
				at(5*time.Second, tick(0))
			},
			begins + `lag=0s lost="10 over quota"` + "\n" + `msg="no longer overloaded" after=2.95s lag=0s lost="600 over quota"`, false,
		},
		"it comes again": {
			func(at func(time.Duration, event.Body)) {
				at(0, lost("probe", "ring full"))
				at(time.Second, tick(0))
				at(2*time.Second, lost("probe", "ring full"))
			},
			begins + `lag=0s lost="10 ring full"` + "\n" + `msg="no longer overloaded" after=0s lag=0s lost="10 ring full"` + "\n" +
				begins + `lag=0s lost="10 ring full"`, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var o overload
			harness.Equal(t, strings.Join(told(&o, test.story), "\n"), test.want)
			if o.Waits() != test.is || (o.report() != "") != test.is {
				t.Errorf("overloaded: %v, %q", o.Waits(), o.report())
			}
		})
	}
}

// Overload is said where a kubelet and an operator look, and is no reason to take cniscope
// for not ready: a pod that causes it must not hold up an update of the node's cniscope.
func TestOverloadIsSaidByReadyz(t *testing.T) {
	n, _ := observed(t, "[metrics]\nlisten = \"127.0.0.1:0\"\n")
	n.take(event.Event{Time: n.pipeline.Now(), Body: &event.Lost{Source: "probe", Reason: "over quota", Count: 7, Process: "p"}})
	settle(t, n)
	status, body := ask(t, n, "/readyz")
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "\noverloaded: ") { // there is no probe
		t.Errorf("readyz: %d %q", status, body)
	}
	n.take(event.Event{Time: n.pipeline.Now() + int64(calmFor), Body: &event.Tick{Lag: int64(30 * time.Millisecond)}})
	settle(t, n)
	if _, body := ask(t, n, "/readyz"); strings.Contains(body, "overloaded") {
		t.Errorf("readyz afterwards: %q", body)
	}
	_, text := ask(t, n, "/metrics")
	for _, want := range []string{
		`cniscope_events_lost_total{reason="over_quota",source="probe"} 7`,
		`cniscope_probe_lag_seconds 0.03`,
	} {
		harness.Says(t, text, want+"\n")
	}
}

func TestABurstIsReportedOnceAfterItsEnd(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	b := burst{log: log}
	tick := func(now int64) { b.Event(event.Event{Time: now, Body: &event.Tick{}}) }
	for now := range int64(20) {
		tick(1 + now)
		b.Result(&pipeline.Judged{Judgement: &judge.Judgement{Reduced: now%2 == 0}})
	}
	if text.Len() > 0 || !b.Waits() {
		t.Errorf("during the burst: %q", &text)
	}
	for range 2 {
		tick(19 + int64(calmFor))
	}
	if strings.Count(text.String(), "\n") != 1 || !strings.Contains(text.String(), "operations=10 slow_or_failed=0") || b.Waits() {
		t.Errorf("after it: %q", &text)
	}
}
