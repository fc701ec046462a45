//go:build linux

package e2e

import (
	"fmt"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// A pod's first sandbox fails, the second works and is removed: the operations are linked.
func TestWhatFollowsOnWhatIsLinked(t *testing.T) {
	s := set(t, true, rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(), rig.Test("moody")}}},
		Plugins:  map[string][]byte{"moody": rig.Script(`[ "$CNI_COMMAND" = ADD ] && { sleep 0.01; fail 11 "not now"; }`)},
	}, scope.Options{})
	pod := rig.PodOptions{Namespace: "shop", Name: "web-0", UID: "u-1"}
	if _, err := s.rig.RunPod(s.ctx, pod); err == nil {
		t.Fatal("the first attempt succeeded")
	}
	harness.Check(t, s.rig.AddPlugin("moody", rig.Script("")))
	pod.Attempt = 1
	id, err := s.rig.RunPod(s.ctx, pod)
	harness.Check(t, err)
	harness.Check(t, s.rig.RemovePod(s.ctx, id))

	var all []*span
	harness.Eventually(s, func() error {
		all = s.calls("ADD", 4)
		if n := len(only(all, "call", "CNI DEL")); n < 4 {
			return fmt.Errorf("%d CNI DEL calls arrived", n)
		}
		return nil
	})
	byID := map[string]*span{}
	for _, x := range all {
		byID[x.id()] = x
	}
	links := map[string]int{}
	for _, x := range only(all, "call", "") {
		for _, l := range x.Links {
			why := attributes(l.Attributes)["cniscope.link"].GetStringValue()
			to := byID[fmt.Sprintf("%x", l.SpanId)]
			if to == nil || to.trace() != fmt.Sprintf("%x", l.TraceId) {
				t.Errorf("%s links (%s) to a span that is not there", x.Name, why)
				continue
			}
			links[fmt.Sprintf("%s of %v attempt -> %s: %s", x.Name, x.attrs["cniscope.attempt"].GetIntValue(), to.Name, why)]++
		}
	}
	for _, want := range []string{
		"CNI ADD of 2 attempt -> CNI ADD: previous attempt",
		"CNI DEL of 0 attempt -> CNI ADD: setup of the sandbox",
	} {
		if links[want] == 0 {
			t.Errorf("no link %q among %v", want, links)
		}
	}
	t.Log(links)
}
