package trace

import (
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/test/harness"
)

// The history and each destination take the same bytes.
func TestSpansAreEncodedOnce(t *testing.T) {
	all := Of(&tracepb.ResourceSpans{SchemaUrl: "a"})
	first := harness.Must(all.Encoded())(t)
	again, _ := all.Encoded()
	var got tracepb.TracesData
	harness.Check(t, proto.Unmarshal(first, &got))
	if &first[0] != &again[0] || cap(first) != len(first) || got.ResourceSpans[0].SchemaUrl != "a" {
		t.Errorf("%v, with room for %d bytes; the second time at %p, not %p", &got, cap(first)-len(first), again, first)
	}
}
