//go:build linux

package chart

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// The container that runs as root has no access to the API server.
func TestTheReaderHasNoPrivilege(t *testing.T) {
	for _, profile := range New(t).Profiles(t) {
		all := render(t, "--set", "profile="+profile+",reader.events.enabled=true")
		spec := one(t, all, "DaemonSet").In("spec", "template", "spec")
		reader := containerCalled(t, all, "reader")
		security := reader.In("securityContext")
		for field, want := range map[string]any{
			"runAsUser": 60947, "runAsGroup": 60947, "runAsNonRoot": true, "privileged": false, "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
		} {
			harness.Equal(t, security.At(field), want, profile, field, "of the reader")
		}
		if all := fmt.Sprint(security.At("capabilities")); all != "map[drop:[ALL]]" {
			t.Errorf("%s: the reader has the capabilities %s", profile, all)
		}
		if security.Text("seccompProfile", "type") != "RuntimeDefault" {
			t.Errorf("%s: the reader is not filtered", profile)
		}
		var mounts []string
		for _, m := range reader.List("volumeMounts") {
			mounts = append(mounts, m.Text("name"))
			harness.Equal(t, m.At("readOnly"), true, profile, "the reader may write to", m.Text("name"))
		}
		harness.EqualSlices(t, mounts, []string{"read", "api"}, profile, "the reader mounts")
		for _, v := range spec.List("volumes") {
			if slices.Contains(mounts, v.Text("name")) && v.At("hostPath") != nil {
				t.Errorf("%s: the reader sees the node's %v", profile, v.At("hostPath"))
			}
		}
		for _, m := range container(t, all).List("volumeMounts") {
			if m.Text("name") == "api" {
				t.Errorf("%s: cniscope has a token", profile)
			}
		}
		harness.Equal(t, spec.At("automountServiceAccountToken"), false, profile, "every container has a token")
	}
}

// Rights are opt-in, and exist only with the feature that needs them.
func TestTheReadersRights(t *testing.T) {
	rights := func(set string) (found []string) {
		for _, kind := range []string{"Role", "ClusterRole"} {
			for _, o := range Of(render(t, "--set", set), kind) {
				found = append(found, strings.TrimPrefix(o.Text("metadata", "name"), "cniscope-"))
			}
		}
		slices.Sort(found)
		return found
	}
	for set, want := range map[string][]string{
		"":                           {"operator"},
		"reader.events.enabled=true": {"cniscope-events", "operator"},
		"reader.enabled=false":       nil,
	} {
		harness.EqualSlices(t, rights(set), want, set, "the roles")
	}
	for set, want := range map[string][]any{"": {"serve"}, "reader.events.enabled=true": {"serve", "--events"}} {
		if got := containerCalled(t, render(t, "--set", set), "reader").At("args"); !reflect.DeepEqual(got, want) {
			t.Errorf("with %q the reader is told %v", set, got)
		}
	}
	off := render(t, "--set", "reader.enabled=false")
	if o := options(t, off); o.Control.ReadGroup != "" {
		t.Errorf("without the reader there is a socket for %s", o.Control.ReadGroup)
	}
	on := options(t, render(t))
	if on.Control.ReadGroup != "60947" || on.ReadFolder() != "/run/cniscope-read" {
		t.Errorf("%+v", on.Control)
	}
}
