// Package fleet simulates the nodes of a large cluster. One server takes the place of every kubelet, and answers an
// exec into a reader's container with made-up answers. The tests here use a real API server and `kubectl cniscope`;
// the tests of plugin/kubectl-cniscope use a simulated API server.
package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet"
)

// Namespace is that of cniscope.
const Namespace = "cniscope"

// Nodes answers in the place of kubelets and readers.
type Nodes struct {
	Spans []byte
	// Hangs reports whether a node accepts an exec and never answers.
	Hangs func(node string) bool
	// Dies reports whether a node closes the connection.
	Dies func(node string) bool
	// Evil is in every text of an answer: bytes that must not reach a terminal.
	Evil string

	// Program runs in the place of a reader; nil: the made-up answers.
	Program func(ctx context.Context, words []string, in io.Reader, out, diagnostics io.Writer) error

	// NodeOf returns the node of a pod. Nil: Pod(i) is on Node(i).
	NodeOf func(pod string) string

	asked, now, most atomic.Int64
}

// Node is the name of a node.
func Node(i int) string { return fmt.Sprintf("node-%03d", i) }

// Pod is the name of the pod of cniscope on a node.
func Pod(i int) string { return fmt.Sprintf("cniscope-%03d", i) }

// Asked returns the number of queries.
func (n *Nodes) Asked() int { return int(n.asked.Load()) }

// Most returns the highest number of concurrent queries.
func (n *Nodes) Most() int { return int(n.most.Load()) }

// ServeHTTP serves a kubelet's exec: /exec/NAMESPACE/POD/CONTAINER.
func (n *Nodes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(path) != 4 || path[0] != "exec" || path[3] != fleet.Container {
		http.NotFound(w, r)
		return
	}
	n.Exec(w, r, path[2])
}

// Exec serves an exec into a pod.
func (n *Nodes) Exec(w http.ResponseWriter, r *http.Request, pod string) {
	n.asked.Add(1)
	for now, most := n.now.Add(1), n.most.Load(); now > most && !n.most.CompareAndSwap(most, now); most = n.most.Load() {
	}
	defer n.now.Add(-1)
	if n.Dies != nil && n.Dies(n.nodeOf(pod)) {
		panic(http.ErrAbortHandler)
	}
	words := r.URL.Query()["command"]
	options := &remotecommand.Options{Stdin: r.URL.Query().Get("stdin") == "true", Stdout: true, Stderr: true}
	remotecommand.ServeExec(w, r, program{n}, pod, "", fleet.Container, words, options, time.Minute, 10*time.Second, remotecommand.SupportedStreamingProtocols)
}

func (n *Nodes) nodeOf(pod string) string {
	if n.NodeOf != nil {
		return n.NodeOf(pod)
	}
	return strings.Replace(pod, "cniscope-", "node-", 1)
}

type program struct{ *Nodes }

func (p program) ExecInContainer(ctx context.Context, pod, _, _ string, words []string, in io.Reader, out, diagnostics io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	node := p.nodeOf(pod)
	if p.Hangs != nil && p.Hangs(node) {
		<-ctx.Done()
		return ctx.Err()
	}
	if p.Program != nil {
		return p.Program(ctx, words, in, out, diagnostics)
	}
	fail := func(code int, format string, values ...any) error {
		fmt.Fprintf(diagnostics, "cniscope-reader: "+format+"\n", values...)
		return utilexec.CodeExitError{Err: errors.New("exit"), Code: code}
	}
	if len(words) < 3 || words[0] != fleet.Program || words[1] != "ask" {
		return fail(fleet.Misused, "%q", words)
	}
	answer, code := p.answer(node, words[2:])
	if code != 0 {
		return fail(code, "%q", words)
	}
	_, err := out.Write(answer)
	return err
}

// answer: every tenth operation waits for a lock, every fiftieth hangs, four nodes have a finding.
func (n *Nodes) answer(node string, question []string) (answer []byte, code int) {
	var number int
	fmt.Sscanf(node, "node-%d", &number) //nolint:errcheck // 0 does
	flag := func(name string) string {
		if i := slices.Index(question, name); i >= 0 && i+1 < len(question) {
			return question[i+1]
		}
		return ""
	}
	within := flag("--namespace")
	switch question[0] {
	case fleet.Calls:
		return marshal(map[string]any{"schema": "cniscope.dev/ps/v1", "calls": n.calls(number, within)}), 0
	case fleet.Operations:
		all := n.operations(number, within, flag("--pod"))
		of := len(all)
		if slices.Contains(question, "--problems") {
			all = slices.DeleteFunc(all, func(l control.Line) bool { return l.Result == control.Ordinary })
		}
		return marshal(map[string]any{"schema": "cniscope.dev/operations/v1", "operations": all, "of": of, "next": len(all)}), 0
	case fleet.Spans:
		if n.Spans == nil || flag("--trace") == "" {
			return nil, fleet.NotRemembered
		}
		return n.Spans, 0
	case fleet.Doctor:
		return marshal(n.doctor(node, number)), 0
	case fleet.Record:
		return []byte("{\"made\":\"up\"}\n"), 0
	}
	return nil, fleet.Misused
}

func (n *Nodes) calls(number int, within string) []control.Call {
	all := []control.Call{}
	if number%50 == 0 && (within == "" || within == "shop") {
		all = append(all, control.Call{
			Namespace: "shop", Pod: fmt.Sprintf("web-%d", number), ContainerID: "0123456789ab", Command: "ADD", IfName: "eth0", Plugin: "calico" + n.Evil,
			Age: time.Duration(number+1) * time.Second, Runs: "calico", PID: uint32(1000 + number), Running: time.Second, State: "S", Waits: "futex_wait_queue",
		})
	}
	return all
}

func (n *Nodes) operations(number int, within, pod string) []control.Line {
	all := []control.Line{}
	for i := range 100 {
		l := control.Line{
			Seq: uint64(i + 1), Time: time.Date(2026, 11, 22, 12, 0, i, 0, time.UTC), Node: "called as it likes", Namespace: "shop", Pod: fmt.Sprintf("web-%d", i),
			Sandbox: fmt.Sprintf("%012x", i), Command: "ADD", IfName: "eth0", Network: "rig", Plugin: "bridge", Duration: 312 * time.Millisecond,
			Result: control.Ordinary, TraceID: fmt.Sprintf("%032x", number*100+i+1),
		}
		if i%2 == 1 {
			l.Namespace = "bank"
		}
		switch {
		case number%10 == 0 && i < 4:
			l.Plugin, l.Duration, l.Result, l.Cause = "portmap", 5*time.Second, control.Slow, "file_lock"
			l.Verdict, l.Remedy, l.Certain = "4.9s of 5s: iptables waited for file lock /run/xtables.lock"+n.Evil, "let kube-proxy use nftables", true
		case number%10 == 1 && i == 0:
			l.Result, l.Cause, l.Error = control.Failed, "plugin_failed", "no addresses available"+n.Evil
		}
		if (within == "" || l.Namespace == within) && (pod == "" || l.Pod == pod) {
			all = append(all, l)
		}
	}
	return all
}

func (n *Nodes) doctor(node string, number int) map[string]any {
	findings, checks := []any{}, []any{map[string]any{"name": "clock", "state": "ok"}}
	if number < 4 {
		findings = append(findings, map[string]any{
			"check": "agent", "level": "problem", "summary": fmt.Sprintf("calico-node on %s has not answered for %ds%s", node, 60+number, n.Evil),
			"evidence": []string{"/var/run/calico/calico.sock refuses connections"}, "remedy": []string{"kubectl delete pod -n kube-system calico-node-" + node},
		})
	}
	if number == 4 {
		checks = append(checks, map[string]any{"name": "service-rules", "state": "could not check", "reason": "no permission"})
	}
	return map[string]any{"schema": "cniscope.dev/doctor/v1", "time": "2026-11-22T12:00:00Z", "took_ns": 1, "findings": findings, "checks": checks}
}

func marshal(v any) []byte {
	var b bytes.Buffer
	_ = json.NewEncoder(&b).Encode(v)
	return b.Bytes()
}

// ReaderPod is cniscope's pod on a node, as the API server returns it.
func ReaderPod(i int) corev1.Pod {
	started := metav1.NewTime(time.Date(2026, 11, 22, 11, 0, 0, 0, time.UTC))
	return corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: Pod(i), Namespace: Namespace, Labels: map[string]string{"app.kubernetes.io/part-of": "cniscope"},
		},
		Spec: corev1.PodSpec{
			NodeName:   Node(i),
			Containers: []corev1.Container{{Name: "cniscope", Image: "cniscope"}, {Name: fleet.Container, Image: "cniscope"}},
		},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: fleet.Container, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}}},
			},
		},
	}
}
