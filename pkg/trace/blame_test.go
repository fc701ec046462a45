package trace

import (
	"slices"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func TestAWaitLinksToTheRunThatHadTheLock(t *testing.T) {
	for name, above := range map[string]string{
		"a trace of its own": "", "below the runtime's": sampled,
		"not below one that is not recorded": unsampled,
	} {
		t.Run(name, func(t *testing.T) {
			other := sandbox(parent(above), func(op *model.Operation) {
				op.ContainerID, op.Calls[0].Runs[0].Process = "c2", "9@9"
			})
			key := other.Key()
			if above == "" {
				key.Trace = event.TraceContext{}
			}
			waits := build(sandbox(func(op *model.Operation) {
				bridge(op).Facts = []*model.Fact{
					{When: between(12, 20), What: &model.Wait{
						Kind: event.WaitMutex, Name: "rtnl",
						Blame: &model.Blame{Call: key, Process: "9@9", Start: 10},
					}},
					{When: between(22, 30), What: &model.Wait{Kind: event.WaitMutex, Name: "rtnl"}},
				}
			}))
			var links []*tracepb.Span_Link
			for _, s := range waits {
				if s.Name == "wait for lock" {
					links = append(links, s.Links...)
				}
			}
			if len(links) != 1 || said(&tracepb.Span{Attributes: links[0].Attributes}, "cniscope.link").
				GetStringValue() != "it had the lock" {
				t.Fatalf("%v", links)
			}
			for _, s := range build(other) {
				if s.Name == "bridge ADD" && slices.Equal(s.SpanId, links[0].SpanId) && slices.Equal(s.TraceId, links[0].TraceId) {
					return
				}
			}
			t.Errorf("no span of the other pod has the link's id")
		})
	}
}
