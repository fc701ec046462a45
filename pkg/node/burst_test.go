package node

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/pipeline"
)

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
