//go:build linux

package doctor

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

func TestAKubeletThatIsNotHealthyIsFound(t *testing.T) {
	n := newNode(t, rig.Options{})
	healthy := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" || !healthy {
			http.Error(w, "[-]syncloop failed: reason withheld", http.StatusInternalServerError)
		}
	}))
	n.flags = []string{"--kubelet", server.Listener.Addr().String()}
	n.silent("kubelet")
	healthy = false
	n.finds("kubelet", doctor.Problem, "500 [-]syncloop failed", "/healthz")

	server.Close()
	harness.Equal(t, state(n.examine(), "kubelet"), doctor.NotApplicable, "without a kubelet the check")
	n.start("kubelet", n.named("kubelet"), "600")
	n.finds("kubelet", doctor.Problem, "connection refused", "journalctl -u kubelet")
}
