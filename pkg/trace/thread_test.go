package trace

import (
	"encoding/hex"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

func TestASpanOfAThreadIsLinked(t *testing.T) {
	thread := func(parent string, trusted bool) *event.ThreadSpan {
		return &event.ThreadSpan{TraceContext: event.TraceContext{Parent: parent}, Trusted: trusted}
	}
	op := served()
	call := bridge(op).Facts[0].What.(*model.Connection)
	call.Threads = []*event.ThreadSpan{thread(ofNRI, false), thread("garbage", false)}
	ran := call.Work.Own.Children[0]
	ran.Thread = thread(unsampled, true)
	call.Work.Shared.Children[0].Thread = thread("00-0-0-01", true)
	without, spans := build(served()), build(op)
	for name, want := range map[string]string{
		"call agent": "11111111111111111111111111111111 2222222222222222",
		"ovs-vsctl":  "0af7651916cd43dd8448eb211c80319c b7ad6b7169203331",
		"ipset":      "",
		"bridge ADD": "",
	} {
		got, s := "", find(spans, name)
		for _, l := range s.Links[len(find(without, name).Links):] {
			got += hex.EncodeToString(l.TraceId) + " " + hex.EncodeToString(l.SpanId)
		}
		harness.Equal(t, got, want, name)
		harness.Equal(t, string(s.ParentSpanId), string(find(without, name).ParentSpanId), name+": the parent")
	}
}
