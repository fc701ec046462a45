package pipeline

import (
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/test/harness"
)

func TestWorkBehindAnADDIsInItsTrace(t *testing.T) {
	for _, kept := range []bool{true, false} {
		p := within(0, judge.Options{Thresholds: judge.Thresholds{Command: time.Second}, Sampling: judge.Sampling{All: kept}})
		var results []Result
		at := func(at time.Duration, body event.Body) {
			results = append(results, p.Apply(event.Event{Time: int64(at), Body: body})...)
		}
		at(0, &event.Agent{Process: "agent", PID: 7, Name: "antrea-agent", Hidden: true})
		at(0, bridge("a", "ADD", "c1"))
		at(100*time.Millisecond, &event.Exit{Process: "a"})
		at(2*time.Second, &event.Tick{})
		at(3*time.Second, &event.Exec{
			Process: "p", Parent: "agent", File: "C:/powershell", Name: "powershell",
			Mentions: []string{"c1"},
		})
		at(5*time.Second, &event.Exit{Process: "p"})
		if !kept {
			harness.Equal(t, len(results), 1, "results of an operation that is not kept")
			continue
		}
		if len(results) != 2 {
			t.Fatalf("%+v", results)
		}
		after, is := results[1].(*After)
		if !is || after.Operation != results[0].(*Judged).Operation.Key() || after.Says == "" {
			t.Fatalf("%+v", results)
		}
		calls, work := results[0].Drawn().Read().ScopeSpans[0].Spans, after.Read().ScopeSpans[0].Spans
		if len(work) != 2 || work[0].Name != "work after ADD" || work[1].Name != "powershell" ||
			string(work[1].ParentSpanId) != string(work[0].SpanId) {
			t.Fatalf("%v", work)
		}
		call := ""
		for _, s := range calls {
			if s.Name == "CNI ADD" {
				call = string(s.SpanId)
			}
			harness.Equal(t, string(s.TraceId), string(work[0].TraceId), s.Name, "is in another trace")
		}
		if string(work[0].ParentSpanId) != call ||
			work[0].EndTimeUnixNano-work[0].StartTimeUnixNano != uint64(4900*time.Millisecond) {
			t.Errorf("%v", work[0])
		}
	}
}
