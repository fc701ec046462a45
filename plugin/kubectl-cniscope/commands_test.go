package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/test/fleet"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/otlptest"
)

const evil = "\x1b[2J\u202e\nfine"

// whole is an operation in a node history: a call, and a command.
const whole = `{"resourceSpans":[{"resource":{"attributes":[{"key":"k8s.namespace.name","value":{"stringValue":"shop"}},
{"key":"k8s.pod.name","value":{"stringValue":"web-0"}}]},"scopeSpans":[{"spans":[
{"traceId":"00000000000000000000000000000001","spanId":"0000000000000001","name":"CNI ADD",
"startTimeUnixNano":"1795348800000000000","endTimeUnixNano":"1795348805000000000","attributes":[
{"key":"cniscope.kind","value":{"stringValue":"call"}},{"key":"cni.command","value":{"stringValue":"ADD"}},{"key":"cni.ifname","value":{"stringValue":"eth0"}}]},
{"traceId":"00000000000000000000000000000001","spanId":"0000000000000002","parentSpanId":"0000000000000001","name":"policyctl\u001b[2J\u202e",
"startTimeUnixNano":"1795348801000000000","endTimeUnixNano":"1795348804000000000","attributes":[{"key":"cniscope.kind","value":{"stringValue":"command"}}]}]}]}]}`

func clusterOf(count int) *api {
	return &api{
		Nodes: &fleet.Nodes{Evil: evil}, count: count,
		pods: map[string]corev1.Pod{
			"shop/web-0": {
				ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "shop", UID: "u"},
				Spec:       corev1.PodSpec{NodeName: "node-010"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
			},
			"shop/late": {
				ObjectMeta: metav1.ObjectMeta{Name: "late", Namespace: "shop"},
				Status:     corev1.PodStatus{Phase: corev1.PodPending},
			},
			"shop/host": {
				ObjectMeta: metav1.ObjectMeta{Name: "host", Namespace: "shop"},
				Spec:       corev1.PodSpec{NodeName: "node-010", HostNetwork: true}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
			},
		},
		events: []corev1.Event{{
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "web-0"}, Type: "Normal", Reason: "NetworkSlow",
			Message: "CNI ADD eth0 took 5s: 4.9s: iptables waited for file lock /run/xtables.lock" +
				evil, ReportingController: "cniscope.dev/reader",
			LastTimestamp: metav1.NewTime(time.Date(2026, 11, 22, 12, 0, 1, 0, time.UTC)), Count: 3,
		}},
	}
}

func TestPs(t *testing.T) {
	config := clusterOf(60).start(t)
	kubectl(t, config, "ps").want(t, 0, "in progress on 60 nodes (namespace shop)\nNODE")
	kubectl(t, config, "ps", "-A").want(t, 0, "2 CNI calls in progress on 60 nodes (all namespaces)\nNODE", "node-050  shop/web-50  ADD eth0", "futex_wait_queue", `\x1b[2J`)
	kubectl(t, config, "ps", "-n", "bank").want(t, 0, "no CNI call is in progress on 60 nodes (namespace bank)")
	kubectl(t, config, "ps", "-A", "--node", "node-050").want(t, 0, "shop/web-50")
	kubectl(t, config, "ps", "-A", "--node", "elsewhere").want(t, 1, "no cniscope pod found on node elsewhere",
		"kubectl get pods -n cniscope")
	kubectl(t, config, "ps", "--format", "yaml").want(t, 2, "want text or json")
	kubectl(t, config, "ps", "-A", "node/node-050").want(t, 0, "shop/web-50")
	r := kubectl(t, config, "ps", "-A", "--format", "json")
	var d psDocument
	if err := json.Unmarshal([]byte(r.out), &d); err != nil || len(d.Calls) != 2 || d.Nodes.Answered != 60 ||
		d.Calls[0].Node != "node-050" {
		t.Errorf("%v %+v", err, d)
	}
}

// A user's flags of kubectl reach the API server.
func TestKubectlsFlags(t *testing.T) {
	var got http.Header
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		http.NotFound(w, r)
	}))
	defer server.Close()
	kubectl(t, os.DevNull, "ps", "-s", server.URL, "--insecure-skip-tls-verify", "--token", "t",
		"--as", "jane", "--as-group", "ops", "--as-user-extra", "scopes=view", "--as-user-extra", "scopes=edit").want(t, 1)
	for name, want := range map[string][]string{
		"Authorization": {"Bearer t"}, "Impersonate-User": {"jane"}, "Impersonate-Group": {"ops"},
		"Impersonate-Extra-Scopes": {"view", "edit"},
	} {
		harness.Equal(t, strings.Join(got[name], " "), strings.Join(want, " "), name)
	}
}

// Failed nodes are named with the reason, and other answers are printed.
func TestPartialAnswers(t *testing.T) {
	a := clusterOf(10)
	a.Dies = func(node string) bool { return node == "node-007" || node == "node-009" }
	a.Hangs = func(node string) bool { return node == "node-008" }
	config := a.start(t)
	kubectl(t, config, "ps", "-A", "--node", "node-000,node-007,node-009").want(t, 3, "shop/web-0",
		"2 of 3 nodes did not answer: ", "node-007", "node-009")
	kubectl(t, config, "ps", "-A", "--node", "node-008", "--node-timeout", "300ms").
		want(t, 1, "1 of 1 node did not answer: no answer within 300ms: node-008")
}

func TestDoctor(t *testing.T) {
	config := clusterOf(12).start(t)
	kubectl(t, config, "doctor", "-A").want(t, 1,
		"✗ 4 of 12 nodes: agent: calico-node on node-000 has not answered for 60s", "on node-000, node-001, node-002, "+
			"node-003",
		"as node-000 has it:", "→ kubectl delete pod", "? 1 of 12 nodes: service-rules: could not check: no permission", "1 finding")
	kubectl(t, config, "doctor", "node-008").want(t, 0, "✓ nothing found on 1 node")
	kubectl(t, config, "doctor", "node-004").want(t, 3, "not every check could be made")
	kubectl(t, config, "doctor").want(t, 1, "✗ 4 of 12 nodes")
	kubectl(t, config, "doctor", "node/node-008").want(t, 0, "✓ nothing found on 1 node")
	kubectl(t, config, "doctor", "--node", "node-008").want(t, 0, "✓ nothing found on 1 node")
	var d doctorDocument
	if r := kubectl(t, config, "doctor", "-A", "--format", "json"); json.Unmarshal([]byte(r.out), &d) != nil ||
		len(d.Findings) != 1 || !d.Findings[0].Differs {
		t.Errorf("%+v", d)
	}
}

func TestTop(t *testing.T) {
	config := clusterOf(40).start(t)
	kubectl(t, config, "top").want(t, 0, "of 40 nodes (namespace shop)")
	kubectl(t, config, "top", "-A").want(t, 0,
		"20 of 4,000 pod setups and teardowns in the last 1h were slow, failed or hung, on 8 of 40 nodes (all namespaces)",
		"CAUSE", "file_lock", "4.9s of 5s: iptables waited for file lock /run/xtables.lock", "→ let kube-proxy use nftables", "plugin_failed", "no addresses available",
		"portmap")
	kubectl(t, config, "top", "-n", "bank", "--since", "10m").want(t, 0, "8 of 2,000 pod setups and teardowns in the last 10m",
		"on 4 of 40 nodes (namespace bank)")
	kubectl(t, config, "top", "--since", "-1h").want(t, 2, "want more than 0")
}

func TestWhy(t *testing.T) {
	a := clusterOf(20)
	a.Spans = otlptest.Encoded(t, whole)
	config := a.start(t)
	kubectl(t, config, "why", "web-0").want(t, 0, "shop/web-0 on node-010, Running",
		"Normal NetworkSlow: CNI ADD eth0 took 5s", "(3 times)",
		"ADD eth0  SLOW: 5s", "→ let kube-proxy use nftables", "policyctl", "│")
	kubectl(t, config, "why", "shop/late").want(t, 0, "It is on no node yet")
	kubectl(t, config, "why", "pod/host").want(t, 0, "hostNetwork")
	kubectl(t, config, "why", "web-98").want(t, 0, "shop/web-98, not found in the API server", "ordinary: 312ms",
		"on node-01")
	kubectl(t, config, "why", "nobody").want(t, 1, "the API server knows none of this name")
	kubectl(t, config, "why", "a/b/c").want(t, 2, "NAMESPACE/POD")
	var d whyDocument
	if r := kubectl(t, config, "why", "web-0", "--format", "json"); json.Unmarshal([]byte(r.out), &d) != nil ||
		len(d.Spans) == 0 || d.Operations[0].Result != control.Slow {
		t.Errorf("%+v", d)
	}
}

func TestMissingRights(t *testing.T) {
	const exec = "create pods/exec cniscope"
	for _, c := range []struct {
		without []string
		args    string
		code    int
		says    []string
	}{
		{[]string{exec}, "doctor -A", 1, []string{
			"may not create pods/exec in namespace cniscope",
			"):\n  kubectl create rolebinding NAME -n cniscope --role cniscope-operator --user jane\nwithout an answer: node-000, ",
		}},
		{[]string{"list pods cniscope", "list pods"}, "doctor -A", 1, []string{
			"may not list pods in namespace cniscope",
			"--role cniscope-operator",
		}},
		{[]string{"get pods shop"}, "why web-0", 3, []string{"shop/web-0\n", "may not get pods in namespace shop"}},
		{[]string{exec}, "why web-0", 3, []string{"NetworkSlow", "--role cniscope-operator --user jane"}},
		{[]string{"list events shop"}, "why web-0", 3, []string{
			"SLOW: 5s", "may not list events in namespace shop",
			"--clusterrole view",
		}},
	} {
		a := clusterOf(3)
		a.pods["shop/web-0"] = corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "shop"},
			Spec:       corev1.PodSpec{NodeName: "node-000"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}
		a.may = without(c.without...)
		t.Run(strings.Join(c.without, ", ")+": "+c.args, func(t *testing.T) {
			kubectl(t, a.start(t), strings.Fields(c.args)...).want(t, c.code, c.says...)
		})
	}
}

// The nodes can pull the image of cniscope's pods. A build without a release has no other.
func TestDebugTakesTheImageOfThePods(t *testing.T) {
	a := clusterOf(1)
	a.may = without("create jobs shop", "get nodes")
	config := a.start(t)
	kubectl(t, config, "debug", "node/typo").want(t, 1, "node typo does not exist; kubectl get nodes lists the nodes")
	kubectl(t, config, "debug", "node/n1", "--conf-dir", "/var/lib/cni").want(t, 1, "image cniscope", "may not create jobs in namespace shop")
	for _, want := range []string{"/proc/1/root/var/lib/cni", "cniscope"} {
		if !bytes.Contains(a.job, []byte(want)) {
			t.Errorf("the job has no %s: %q", want, a.job)
		}
	}
	kubectl(t, clusterOf(0).start(t), "debug", "node/n1").want(t, 2, "has no published image, and no pod of cniscope was found: set --image")
}

func TestRecord(t *testing.T) {
	config := clusterOf(20).start(t)
	file := filepath.Join(t.TempDir(), "web.rec")
	kubectl(t, config, "record", "web-0", "-o", file, "--for", "1s").want(t, 0, "recording web-0 on node-010 for 1s",
		"cniscope show "+file)
	if text, err := os.ReadFile(file); err != nil || string(text) != "{\"made\":\"up\"}\n" {
		t.Errorf("%v %q", err, text)
	}
	kubectl(t, config, "record", "node/node-003", "-o", file).want(t, 1, "exists: --overwrite replaces it")
	kubectl(t, config, "record", "node/node-003", "-o", file+".gz").want(t, 0, "node-003")
	kubectl(t, config, "record", "node-003", "-o", file).want(t, 1, "for a node, say node/node-003")
	kubectl(t, config, "record", "web-0", "--for", "1h").want(t, 2, "up to 10m")
	var said bytes.Buffer
	code := execute([]string{"kubectl-cniscope", "--kubeconfig", config, "record", "web-0", "-o", "-"}, harness.Terminal(t), &said)
	ran{said: said.String(), code: code}.want(t, 2, "standard output: redirect it to a file")
}

func TestCompletion(t *testing.T) {
	config := clusterOf(12).start(t)
	kubectl(t, config, "__complete", "why", "w").want(t, 0, "web-0\n")
	kubectl(t, config, "__complete", "why", "shop/l").want(t, 0, "shop/late\n")
	kubectl(t, config, "__complete", "record", "node/node-01").want(t, 0, "node/node-010\nnode/node-011\n")
	kubectl(t, config, "__complete", "ps", "node/node-01").want(t, 0, "node/node-010\nnode/node-011\n")
	kubectl(t, config, "__complete", "doctor", "node-000", "node-00").want(t, 0, "node-001\n")
	kubectl(t, config, "__complete", "ps", "--format", "").want(t, 0, "json\n")
	// kubectl's name for completion.
	if got := strings.Join(completing([]string{"/usr/local/bin/kubectl_complete-cniscope", "why", ""}),
		" "); got != "__complete why " {
		t.Errorf("%q", got)
	}
}

// Without a sidecar, the error says so.
func TestNobodyToAsk(t *testing.T) {
	kubectl(t, clusterOf(0).start(t), "ps").want(t, 1, "no cniscope that can be asked in any namespace",
		"reader.enabled=true")
	a := clusterOf(0)
	a.may = without("list pods")
	kubectl(t, a.start(t), "ps").want(t, 1, "--cniscope-namespace")
}

// Without an API server each command prints one line, which names KUBECONFIG.
func TestNoAPIServer(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	harness.Check(t, os.WriteFile(config, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c",
"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}]}`), 0o600))
	for _, args := range []string{"why web-0", "ps -A", "doctor -A", "top", "record web-0"} {
		r := kubectl(t, config, strings.Fields(args)...)
		r.want(t, 1, "no answer from the API server http://127.0.0.1:1: connect: connection refused; set KUBECONFIG")
		harness.Equal(t, strings.Count(r.said, "\n"), 1, args, r.said)
	}
}

func TestHowItIsCalled(t *testing.T) {
	kubectl(t, "none", "pss").want(t, 2, `unknown command "pss"; did you mean ps?`, "Try 'kubectl cniscope --help'")
	kubectl(t, "none", "why", "web", "--limit", "0").want(t, 2, "want 1 or more", "Try 'kubectl cniscope why --help'")
	kubectl(t, "none", "version", "--format", "json").want(t, 0, `"schema": "cniscope.dev/version/v1"`,
		`"version": "devel"`)
}

// Each row is a command line with its exit code, and what its output or error contains.
func TestCommandLines(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"pss", 2, `unknown command "pss"; did you mean ps?`},
		{"version -o wide", 2, "--output wide: want text or json"},
		{"version -o json", 0, `"schema":`},
		{"doctor --all-nodes n1", 2, "choose one of node names and --all-nodes"},
		{"doctor -A node/n1", 2, "choose one of node names and --all-nodes"},
		{"doctor --all --node n1", 2, "choose one of node names and --all-nodes"},
		{"ps --color maybe", 2, "--color maybe: want auto, always or never"},
		{"__complete doctor --color ", 0, "auto\nalways\nnever\n"},
		{"ps n1", 2, "n1: want node/NODE; for a pod use --pod"},
		{"top n1", 2, "n1: want node/NODE"},
		{"ps --help", 0, "Use \"kubectl cniscope options\" for the flags that every command accepts."},
		{"debug node/n1 --conf-dir net.d", 2, "--conf-dir net.d: want an absolute path"},
		{"options", 0, "--node-timeout duration"},
		{"options", 0, "--as-group"},
	} {
		kubectl(t, "none", strings.Split(c.args, " ")...).want(t, c.code, c.says)
	}
	if r := kubectl(t, "none", "ps", "--help"); strings.Contains(r.out, "--concurrency") || !strings.Contains(r.out, "--output") {
		t.Error(r.out)
	}
}

func TestHelpTeaches(t *testing.T) {
	for _, name := range []string{"why", "ps", "doctor", "top", "record"} {
		r := kubectl(t, "none", name, "--help")
		r.want(t, 0, "  kubectl cniscope "+name)
		harness.Equal(t, strings.Contains(r.out, "=true|false]"), false, name)
	}
	kubectl(t, "none", "--version").want(t, 0, "kubectl cniscope devel")
}

func TestDocumentsAreAsTheSchemasSay(t *testing.T) {
	a := clusterOf(12)
	a.Spans = otlptest.Encoded(t, whole)
	config := a.start(t)
	for name, args := range map[string][]string{
		"why": {"why", "web-0"}, "ps": {"ps", "-A"}, "doctor": {"doctor", "-A"}, "top": {"top"},
	} {
		compiler := jsonschema.NewCompiler()
		compiler.DefaultDraft(jsonschema.Draft2020)
		compiler.AssertFormat()
		schema := harness.Must(compiler.Compile(filepath.FromSlash("../../docs/schemas/kubectl-" + name + ".json")))(t)
		r := kubectl(t, config, append(args, "--format", "json")...)
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(r.out))
		if err != nil {
			t.Fatalf("%s: %v\n%s%s", name, err, r.out, r.said)
		}
		if err := schema.Validate(document); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
