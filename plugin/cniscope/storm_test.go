package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/pipeline"
)

func TestABurstIsReportedOnceAfterItsEnd(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	var s storm
	for now := range int64(20) {
		s.take(&pipeline.Judged{Judgement: &judge.Judgement{Reduced: now%2 == 0}}, now)
		s.tick(now, log)
	}
	if text.Len() > 0 || !s.is() {
		t.Errorf("during the burst: %q", &text)
	}
	for range 2 {
		s.tick(18+int64(calmFor), log)
	}
	if strings.Count(text.String(), "\n") != 1 || !strings.Contains(text.String(), "operations=10 slow_or_failed=0") || s.is() {
		t.Errorf("after it: %q", &text)
	}
}
