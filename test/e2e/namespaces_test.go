//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// inside holds the arguments of TestInsideANamespace: the pods' prefix and the output file.
const inside = "CNISCOPE_TEST_INSIDE"

// Two nodes in separate PID namespaces, like kind's, with a cniscope each, which observes only its own calls.
func TestTwoNodesInTwoPIDNamespaces(t *testing.T) {
	harness.Root(t)
	_, err := rig.Tools("containerd")
	harness.Check(t, err)
	type node struct {
		cmd  *exec.Cmd
		seen string
		out  strings.Builder
	}
	var nodes []*node
	for _, name := range []string{"left", "right"} {
		n := &node{seen: filepath.Join(t.TempDir(), "seen")}
		n.cmd = exec.CommandContext(t.Context(), "unshare", "--pid", "--fork", "--mount-proc", "--kill-child",
			os.Args[0], "-test.run", "^TestInsideANamespace$", "-test.v")
		n.cmd.Env = append(os.Environ(), inside+"="+name+":"+n.seen)
		n.cmd.Stdout, n.cmd.Stderr = &n.out, &n.out
		harness.Check(t, n.cmd.Start())
		nodes = append(nodes, n)
	}
	for i, n := range nodes {
		if err := n.cmd.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, n.out.String())
		}
		var got []string
		data, err := os.ReadFile(n.seen)
		harness.Check(t, err)
		harness.Check(t, json.Unmarshal(data, &got))
		var want []string
		for k := range podsInside {
			want = append(want, fmt.Sprintf("%s-%d", []string{"left", "right"}[i], k))
		}
		harness.EqualSlices(t, got, want, "saw")
	}
}

const podsInside = 6

// TestInsideANamespace is one of the two nodes.
func TestInsideANamespace(t *testing.T) {
	name, seen, ok := strings.Cut(os.Getenv(inside), ":")
	if !ok {
		t.Skip("run by TestTwoNodesInTwoPIDNamespaces")
	}
	s := set(t, false, rig.Options{}, scope.Options{Node: name})
	for i := range podsInside {
		s.pod(rig.PodOptions{Name: fmt.Sprintf("%s-%d", name, i)})
	}
	pods := map[string]bool{}
	for _, x := range s.calls("ADD", 2*podsInside) {
		if pod := x.text("k8s.pod.name"); pod != "" {
			pods[pod] = true
		}
	}
	var names []string
	for pod := range pods {
		names = append(names, pod)
	}
	slices.Sort(names)
	data, err := json.Marshal(names)
	harness.Check(t, err)
	harness.Check(t, os.WriteFile(seen, data, 0o600))
}
