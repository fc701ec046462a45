package doctor

import (
	"errors"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/test/harness"
)

// A node without runtime and CNI has one line for all checks that need the runtime, and no network is called healthy.
func TestANodeWithoutARuntimeSaysSoOnce(t *testing.T) {
	f := whole()
	f.Folder.Value = fact.Folder{Dir: "/etc/cni/net.d", Missing: true}
	for _, err := range []*error{&f.CRI.Err, &f.Containers.Err, &f.Held.Err, &f.Binaries.Err} {
		*err = errors.New("the container runtime does not answer")
	}
	var out strings.Builder
	harness.Check(t, Judge(f).Text(&out))
	harness.Equal(t, strings.Count(out.String(), "could not check: the container runtime does not answer"), 1, "times")
	harness.Says(t, out.String(), "? cni-binaries, cni-loaded, cni-order, network-ready, cni-agent, network-pods, ", "- cni-version: no network is configured")
	if t.Failed() {
		t.Log(out.String())
	}
}
