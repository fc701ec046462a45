//go:build linux

package scenarios

import (
	"slices"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// A script before bridge with another configuration that execs it: one run, until bridge's end, with its answer.
func TestAWrapperThatExecsTheRealPlugin(t *testing.T) {
	s := set(t, rig.Options{Plugins: map[string][]byte{"wrapped": []byte(`#!/bin/sh
conf=$(cat)
exec "${CNI_PATH%%:*}/bridge" <<EOF
$conf
EOF
`)}}, "[slow]\ncall = \"1m\"\ncommand = \"1m\"\nhung = \"3s\"\n")
	s.network("wrapped", rig.Bridge(rig.Conf{"type": "wrapped"}))
	call := s.add(rig.PodOptions{}, false)
	var runs []string
	for _, x := range call.Below("run", "delegate") {
		runs = append(runs, x.Name)
	}
	harness.EqualSlices(t, runs, []string{"wrapped ADD", "host-local ADD"}, "runs")
	if !slices.ContainsFunc(call.Below("command"), func(x *span) bool { return x.Name == "bridge" }) {
		t.Error("bridge is no image of the run")
	}
	for key, want := range map[string]string{"cniscope.unfinished": "", "cniscope.hung": "", "cniscope.partial": "", "error.type": ""} {
		harness.Equal(t, call.Attrs[key], want, key)
	}
	if x := call.Below("run", "delegate")[0]; x.Attrs["cniscope.result.ips"] == "" {
		t.Errorf("no address is known of what bridge answered: %v", x.Attrs)
	}
}
