package node

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/test/harness"
)

// The goroutine that takes events never waits for the reader of the log.
// A test in which it does hangs.
func TestEventsAreTakenThoughNobodyReadsTheLog(t *testing.T) {
	r, w, err := os.Pipe() // holds 64 KiB
	harness.Check(t, err)
	out := newLogFile(w)
	n := harness.Must(newNode(config.Default(), "test", out.logger("json"), out.level))(t)
	n.consume(config.Default())
	for i := range 300 {
		n.take(event.Event{Body: &event.Degraded{Feature: fmt.Sprint("feature ", i), Reason: strings.Repeat("because ", 100)}})
	}
	n.flush(t.Context())
	n.close(t.Context(), false)
	_ = r.Close() // the reader exits
	out.close(nil)
}

// A tenant may have thousands of calls fail; the log goes on to tell of others, and says
// how many lines it left out.
func TestALineThatOthersCauseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // each second of the clock allows a line more
		var text bytes.Buffer
		out := newLogFile(&text)
		n := harness.Must(newNode(config.Default(), "test", out.logger("text"), out.level))(t)
		for i := range 10_000 {
			if i%(queueMin/2) == 0 {
				settle(t, n)
			}
			n.take(event.Event{Body: &event.Lost{Source: "nri", Reason: "queue full", Count: 1}})
			n.take(event.Event{Body: (*event.Degraded)(nil)}) // a panic
		}
		settle(t, n)
		n.log.Warn("something else")
		if lost := out.lost()["limit"]; lost < 19_900 {
			t.Errorf("%d lines were left out, it says", lost)
		}
		n.consumers.close(t.Context())
		n.close(t.Context(), false)
		out.close(nil)
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		if len(lines) > 100 || !strings.Contains(text.String(), "something else") {
			t.Errorf("%d lines", len(lines))
		}
		harness.Says(t, text.String(), `msg="log lines were left out" text="events were lost" left_out=`)
	})
}

// A backend has no trace of zeros.
func TestALineNamesAKeptTrace(t *testing.T) {
	for id, want := range map[string]string{"": "", "0102030405060708090a0b0c0d0e0f10": " trace_id=0102030405060708090a0b0c0d0e0f10"} {
		var text bytes.Buffer
		out := newLogFile(&text)
		s := &pipeline.Started{}
		s.Verdict = &judge.Verdict{Remedy: "wait"}
		if id != "" {
			s.ID = harness.Must(oteltrace.TraceIDFromHex(id))(t)
		}
		lines{log: out.logger("text")}.started(s)
		out.close(nil)
		if !strings.HasSuffix(text.String(), "remedy=wait"+want+"\n") {
			t.Error(text.String())
		}
	}
}

// What ends the program is said, whatever was said before.
func TestWhatEndsTheProgramIsAlwaysSaid(t *testing.T) {
	var text bytes.Buffer
	out := newLogFile(&text)
	log := out.logger("text")
	for i := range 20_000 {
		log.Warn(fmt.Sprint("a text of its own ", i%1000))
	}
	out.close(errors.New("the reason"))
	harness.Says(t, text.String(), `msg=ended error="the reason"`)
}
