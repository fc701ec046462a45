package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cniscope/cniscope/test/fleet"
	"github.com/cniscope/cniscope/test/harness"
)

// api is a fake API server in front of simulated nodes.
type api struct {
	*fleet.Nodes
	count int
	// may reports the user's rights: "list pods cniscope", "create pods/exec cniscope", …
	may    func(right string) bool
	pods   map[string]corev1.Pod // further pods by namespace/name
	events []corev1.Event

	mu    sync.Mutex
	asked []string // requested rights, in order
	job   []byte   // created last
}

func (a *api) start(t *testing.T) (kubeconfig string) {
	t.Helper()
	if a.may == nil {
		a.may = func(string) bool { return true }
	}
	server := httptest.NewUnstartedServer(a)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // for aborted handshakes
	server.StartTLS()
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "config")
	config := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"test",
"clusters":[{"name":"test","cluster":{"server":%q,"insecure-skip-tls-verify":true}}],
"users":[{"name":"jane","user":{"token":"jane"}}],
"contexts":[{"name":"test","context":{"cluster":"test","user":"jane","namespace":"shop"}}]}`, server.URL)
	harness.Check(t, os.WriteFile(file, []byte(config), 0o600))
	return file
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(path) == 3 && path[2] == "pods":
		if a.allowed(w, "list", "pods", "") {
			a.readers(w)
		}
	case len(path) == 5 && path[4] == "pods":
		if !a.allowed(w, "list", "pods", path[3]) {
			return
		}
		if path[3] == fleet.Namespace {
			a.readers(w)
			return
		}
		list := corev1.PodList{}
		for name, pod := range a.pods {
			if strings.HasPrefix(name, path[3]+"/") {
				list.Items = append(list.Items, pod)
			}
		}
		write(w, "PodList", list)
	case len(path) == 5 && path[4] == "events":
		if a.allowed(w, "list", "events", path[3]) {
			list := corev1.EventList{}
			for _, e := range a.events {
				if strings.Contains(r.URL.Query().Get("fieldSelector"), "involvedObject.name="+e.InvolvedObject.Name) {
					list.Items = append(list.Items, e)
				}
			}
			write(w, "EventList", list)
		}
	case len(path) == 6 && path[4] == "pods":
		if pod, ok := a.pods[path[3]+"/"+path[5]]; a.allowed(w, "get", "pods", path[3]) {
			if !ok {
				refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
				return
			}
			write(w, "Pod", pod)
		}
	case len(path) == 4 && path[2] == "nodes" && path[3] != "typo":
		if a.allowed(w, "get", "nodes", "") {
			write(w, "Node", corev1.Node{})
		}
	case len(path) == 7 && path[6] == "exec":
		if a.allowed(w, "create", "pods/exec", path[3]) {
			a.Exec(w, r, path[5])
		}
	case len(path) == 6 && path[5] == "jobs":
		a.job, _ = io.ReadAll(r.Body)
		if a.allowed(w, "create", "jobs", path[4]) {
			http.NotFound(w, r)
		}
	case path[len(path)-1] == "selfsubjectreviews":
		write(w, "SelfSubjectReview", map[string]any{
			"apiVersion": "authentication.k8s.io/v1", "status": map[string]any{"userInfo": map[string]any{"username": "jane"}},
		})
	default:
		http.NotFound(w, r)
	}
}

func (a *api) allowed(w http.ResponseWriter, verb, resource, namespace string) bool {
	right := strings.TrimSpace(verb + " " + resource + " " + namespace)
	a.mu.Lock()
	a.asked = append(a.asked, right)
	a.mu.Unlock()
	if a.may(right) {
		return true
	}
	refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden,
		fmt.Sprintf(`%s is forbidden: User "jane" cannot %s resource`, resource, verb))
	return false
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{
			APIVersion: "v1",
			Kind:       "Status",
		}, Status: "Failure", Code: int32(code), Reason: reason, Message: message,
	})
}

func write(w http.ResponseWriter, kind string, object any) {
	raw, _ := json.Marshal(object)
	var fields map[string]any
	_ = json.Unmarshal(raw, &fields)
	if fields["apiVersion"] == nil {
		fields["apiVersion"] = "v1"
	}
	fields["kind"] = kind
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(fields)
}

func (a *api) readers(w http.ResponseWriter) {
	list := corev1.PodList{}
	for i := range a.count {
		list.Items = append(list.Items, fleet.ReaderPod(i))
	}
	write(w, "PodList", list)
}

type ran struct {
	out, said string
	code      int
}

func kubectl(t *testing.T, kubeconfig string, args ...string) ran {
	t.Helper()
	var out, said bytes.Buffer
	code := execute(append([]string{"kubectl-cniscope", "--kubeconfig", kubeconfig, "--node-timeout", "1m"}, args...),
		&out, &said)
	for _, text := range []string{out.String(), said.String()} {
		if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' || r == '\u202e' }); i >= 0 {
			t.Errorf("%v prints what a terminal obeys: %q", args, text[i:min(len(text), i+40)])
		}
	}
	return ran{out.String(), said.String(), code}
}

func (r ran) want(t *testing.T, code int, parts ...string) {
	t.Helper()
	harness.Equal(t, r.code, code, "it ended with")
	harness.Says(t, r.out+r.said, parts...)
	if t.Failed() {
		t.Fatalf("standard output:\n%s\nstandard error:\n%s", r.out, r.said)
	}
}

// without returns all rights except the given ones.
func without(rights ...string) func(string) bool {
	return func(right string) bool { return !slices.Contains(rights, right) }
}
