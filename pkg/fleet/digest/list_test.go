package digest

import (
	"bytes"
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/test/harness"
)

func TestListsAreBounded(t *testing.T) {
	var said struct{ Operations List[control.Line] }
	for document, want := range map[string]int{
		`{"operations":[{"pod":"web-0"},{"pod":"web-1"}]}`: 2, `{"operations":[]}`: 0, `{"operations":null}`: 0, `{}`: 0,
	} {
		said.Operations = nil
		if err := json.Unmarshal([]byte(document), &said); err != nil || len(said.Operations) != want {
			t.Errorf("%s: %v, %v", document, said.Operations, err)
		}
	}
	for _, wrong := range []string{`{"operations":{}}`, `{"operations":"x"}`, `{"operations":[1]}`, `{"operations":7}`} {
		if err := json.Unmarshal([]byte(wrong), &said); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
	hostile := []byte(`{"operations":[{}` + strings.Repeat(",{}", 1<<20) + `]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := json.Unmarshal(hostile, &said); err == nil || !strings.Contains(err.Error(), "12,000") {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("%d MB", took>>20)
	}
}

// Repeated findings of one node count once.
func TestANodeIsNamedOnce(t *testing.T) {
	var f Findings
	r, err := UnmarshalReport([]byte(`{"checks":[{"name":"x","state":"could not check","reason":"1"},{"name":"x","state":"could not check","reason":"2"}]}`))
	harness.Check(t, err)
	f.Add("node-1", r)
	f.Add("node-2", r)
	if all := f.Unmade(); len(all) != 1 || len(all[0].Nodes) != 2 {
		t.Errorf("%+v", all)
	}
}

// Before: one node could fill the list of findings, so that the others' were left out.
func TestANodeLeavesRoomForOthers(t *testing.T) {
	var f Findings
	report := func(kinds int) (r Report) {
		for n := range kinds {
			check := strings.Repeat("x", n+1)
			r.Findings = append(r.Findings, Found{Check: check, Level: Problem, Summary: "s"})
			r.Checks = append(r.Checks, Check{Name: check, State: uncheckedState})
		}
		return r
	}
	f.Add("hostile", report(1000))
	f.Add("honest", Report{Findings: []Found{{Check: "agent", Level: Problem, Summary: "down"}}})
	all := f.Sorted()
	if !slices.ContainsFunc(all, func(k Finding) bool { return k.Check == "agent" }) || len(all)+len(f.Unmade())+f.Left != 2001 {
		t.Errorf("%d kinds, %d left out", len(all), f.Left)
	}
}

// Before: 4 MiB of empty spans, or attributes, took 600 MB.
func TestSpansAreBounded(t *testing.T) {
	within := func(number protowire.Number, inner []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), inner)
	}
	empty := bytes.Repeat(within(2, nil), 1<<21)
	attributes := bytes.Repeat(within(9, nil), 1<<21)
	for name, encoded := range map[string][]byte{
		"spans": within(1, within(2, empty)), "attributes": within(1, within(2, within(2, attributes))),
		"resources": bytes.Repeat(within(1, nil), 1<<21), "no protobuf": {7},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Spans(encoded); err == nil {
			t.Errorf("%s are taken", name)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
			t.Errorf("%s: %d MB", name, took>>20)
		}
	}
}
