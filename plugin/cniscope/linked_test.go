package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// What runs as root speaks to no Kubernetes API, so no client of one is in it.
func TestNoClientOfTheKubernetesAPIIsLinked(t *testing.T) {
	out := harness.Must(exec.Command("go", "list", "-deps", ".").Output())(t)
	if !strings.Contains(string(out), "github.com/cniscope/cniscope/pkg/control") {
		t.Fatalf("these are not cniscope's packages:\n%s", out)
	}
	for pkg := range strings.Lines(string(out)) {
		for _, client := range []string{"k8s.io/client-go", "k8s.io/apimachinery", "k8s.io/api/"} {
			if strings.HasPrefix(pkg, client) {
				t.Errorf("cniscope links %s", pkg)
			}
		}
	}
}
