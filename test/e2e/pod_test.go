//go:build linux

package e2e

import (
	"testing"

	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

func TestFirst(t *testing.T) {
	s := set(t, true, rig.Options{}, scope.Options{})
	s.pod(rig.PodOptions{Namespace: "shop", Name: "web-0", HostPorts: []rig.HostPort{{Host: 18080, Container: 80}}})
	for _, x := range s.calls("ADD", 2) {
		t.Log(x.Name, x.kind(), x.took(), x.attrs)
	}
	t.Log(s.scope.LogText())
}
