//go:build linux

package upgrade

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/test/fleet"
	"github.com/cniscope/cniscope/test/harness"
)

// side matches a message that says which side to upgrade.
const side = `install chart 0.3.0 or later|install the same version|` + restart

// restart matches what a command says beside a node of another version.
const restart = `restart it to match this version|is it of another version`

// A kubectl plugin, a sidecar and a node of which one is of the release before answer, or say which side to upgrade.
func TestASkewOfOneVersionAnswersOrSaysWhichSideToUpgrade(t *testing.T) {
	n := newNode(t)
	for _, of := range []programs{before, now} {
		end := n.observes(of)
		pod := n.pod()
		n.says(of, "top", "shop/"+pod)
		for _, pair := range []struct{ reader, plugin programs }{{now, now}, {now, before}, {before, now}, {"", now}} {
			t.Run(fmt.Sprintf("node %s, sidecar %s, kubectl plugin %s", of, pair.reader, pair.plugin), func(t *testing.T) {
				(&cluster{T: t, node: n, reader: pair.reader, pod: pod}).ask(pair.plugin)
			})
		}
		end()
	}
}

// cluster is an API server of one node, whose exec runs a sidecar on the node's socket.
type cluster struct {
	*testing.T
	node   *node
	reader programs // "": the pod has no sidecar
	pod    string
}

func (c *cluster) ask(plugin programs) {
	c.Helper()
	server := httptest.NewTLSServer(c)
	defer server.Close()
	config := filepath.Join(c.TempDir(), "config")
	harness.Check(c, os.WriteFile(config, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"test",
"clusters":[{"name":"test","cluster":{"server":%q,"insecure-skip-tls-verify":true}}],
"users":[{"name":"jane","user":{"token":"jane"}}],
"contexts":[{"name":"test","context":{"cluster":"test","user":"jane","namespace":"shop"}}]}`, server.URL), 0o600))
	for question, answer := range map[string]string{
		"ps -A": "^no CNI call is", "top -A": " in the last ", "why shop/" + c.pod: "ADD eth0  SLOW",
	} {
		words := append(strings.Fields(question), "--kubeconfig", config)
		cmd := exec.CommandContext(c.node.ctx, plugin.file("kubectl-cniscope"), words...)
		out, err := cmd.CombinedOutput()
		said := regexp.MustCompile(answer + "|" + side).Find(out)
		if c.Logf("%s: %v, %q", question, err, said); said == nil {
			c.Errorf("it neither answers nor says which side to upgrade:\n%s", out)
		}
	}
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	pod := fleet.ReaderPod(0)
	pod.Annotations = map[string]string{"cniscope.dev/operator": "cniscope-operator"} // for plugins before 0.3
	if c.reader == "" {
		pod.Spec.Containers, pod.Status.ContainerStatuses = pod.Spec.Containers[:1], nil
	}
	var answer any
	switch {
	case path[len(path)-1] == "exec":
		(&fleet.Nodes{Program: c.sidecar}).Exec(w, r, path[5])
		return
	case path[len(path)-1] == "token":
		answer = map[string]any{
			"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "status": map[string]any{"token": "e30.e30.e30"},
		}
	case path[len(path)-1] == "pods" && slices.Contains(path, "shop"):
		answer = corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	case path[len(path)-1] == "pods":
		answer = corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{pod}}
	case slices.Contains(path, "pods"):
		pod.Namespace, pod.Name = path[3], path[5]
		answer = pod
	case path[len(path)-1] == "events":
		answer = corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func (c *cluster) sidecar(ctx context.Context, words []string, in io.Reader, out, diagnostics io.Writer) error {
	cmd := exec.CommandContext(ctx, c.reader.file("cniscope-reader"), words[1:]...)
	cmd.Env = []string{"CNISCOPE_READ_SOCKET=" + filepath.Join(c.node.rig.Dir(), "run", "read", control.ReadSocket)}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, diagnostics
	err := cmd.Run()
	if err != nil && cmd.ProcessState != nil {
		return utilexec.CodeExitError{Err: err, Code: cmd.ProcessState.ExitCode()}
	}
	return err
}
