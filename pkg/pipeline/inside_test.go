package pipeline

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/attr/registry"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

func insideSound(t *testing.T, im *model.Image) {
	within := func(what string, i model.Interval) {
		if i.End < i.Start || i.Start < im.Start {
			t.Errorf("a %s from %d to %d in an image that began at %d", what, i.Start, i.End, im.Start)
		}
	}
	for _, f := range im.Facts {
		within(fmt.Sprintf("%T", f.What), f.When)
		if w, is := f.What.(*model.Wait); is && w.HolderAge < 0 {
			t.Errorf("a lock was held for %d ns", w.HolderAge)
		}
	}
	for _, idle := range [][]model.Interval{im.Asleep, im.Polling} {
		for i, one := range idle {
			within("rest", one)
			if i > 0 && one.Start <= idle[i-1].End {
				t.Errorf("rests overlap: %v", idle)
			}
		}
	}
}

func TestWhateverComesInWhateverOrder(t *testing.T) {
	m := harness.Must(registry.Load())(t)
	seen := map[string]bool{}
	for seed := range uint16(300) {
		for _, r := range streamed(t, binary.BigEndian.AppendUint16(nil, seed)) {
			registered(t, m, seen, r)
		}
	}
	if len(seen) < 70 || !seen[attr.KindOutage] {
		t.Errorf("only %d attributes and kinds were seen", len(seen))
	}
}

// registered checks an attribute's key, type and spans against the registry: a backend keeps the first type that it
// sees, and drops others.
func registered(t *testing.T, m *registry.Model, seen map[string]bool, r Result) {
	if r.Drawn().Spans == nil {
		return
	}
	of := map[string]string{
		"string": "string", "int": "int", "template[int]": "int", "boolean": "bool",
		"double": "double", "string[]": "array",
	}
	see := func(where string, kvs []*commonpb.KeyValue) (kind string) {
		for _, kv := range kvs {
			if kv.Key == string(attr.KindKey) {
				where, kind = kv.Value.GetStringValue(), kv.Value.GetStringValue()
			}
			a := m.Attribute(kv.Key)
			if a == nil {
				t.Fatalf("%s of %s is not in the registry", kv.Key, where)
			}
			is := strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", kv.Value.Value), "*v1.AnyValue_"))
			if a.Type != "" && is != of[a.Type]+"value" {
				t.Errorf("%s is a %s, by the registry a %s", kv.Key, is, a.Type)
			}
			if kind != "" && !slices.Contains(a.Kinds, kind) {
				t.Errorf("by the registry no span of the kind %s has %s", kind, kv.Key)
			}
			seen[kv.Key] = true
		}
		return kind
	}
	for _, s := range r.Drawn().Read().ScopeSpans[0].Spans {
		kind := see("", s.Attributes)
		seen[kind] = true
		for _, e := range s.Events {
			see("an event of "+kind, e.Attributes)
		}
		for _, l := range s.Links {
			see("a link of "+kind, l.Attributes)
		}
	}
}
