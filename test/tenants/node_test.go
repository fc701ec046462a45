//go:build linux

// Package tenants tests that pods cannot attack each other's traces: hostile pods on the rig try to add spans to
// others' traces, to remove spans, and to pass for plugins and agents, while ordinary pods start and stop.
package tenants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

var program string

func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "remote":
		os.Exit(remote())
	case "agentd":
		os.Exit(serveAgent(os.Args[1], os.Args[2], os.Args[3]))
	}
	os.Exit(scope.Main(m, &program))
}

// node is a rig, a plugin and its agent, an API server, and a cniscope that writes its spans and a recording.
type node struct {
	*testing.T
	ctx              context.Context
	rig              *rig.Rig
	scope            *scope.Scope
	agent            *agent
	known            string
	spans, recording string
	api              int // the process of the API server
	apiPod           string
	victims          []heldPod
	serving          string
	stop             func() error
}

const (
	hostileImage = "localhost/cniscope-hostile:rig"
	apiImage     = "localhost/cniscope-apiserver:rig"
)

func newNode(t *testing.T, toml string) *node {
	t.Helper()
	harness.Root(t)
	ctx := harness.Context(t)
	n := &node{T: t, ctx: ctx}
	self := harness.Must(os.Executable())(t)
	binary := harness.Must(os.ReadFile(self))(t)
	n.rig = scope.Rig(ctx, t, rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge()}}},
		Plugins:  map[string][]byte{"remote": binary},
	})
	for source, image := range map[string]string{"./hostile": hostileImage, "./apiserver": apiImage} {
		harness.Check(t, n.rig.ImportProgram(ctx, harness.Build(t, source), image))
	}
	n.known = filepath.Join(n.rig.Dir(), "known")
	harness.Check(t, os.Mkdir(n.known, 0o755))
	n.agent = startAgent(t, n.rig.Env())
	n.startAPIServer()
	n.network()
	n.observe(toml)
	return n
}

// startAPIServer starts an API server in its own pod, where no process accepts.
func (n *node) startAPIServer() {
	n.Helper()
	n.serveAPI(kind{PodOptions: rig.PodOptions{Namespace: "kube-system", Name: "apiserver"}},
		rig.ContainerOptions{Name: "apiserver", Image: apiImage, Args: []string{"/apiserver", apiPort}})
}

const apiPort = ":6443"

func (n *node) serveAPI(k kind, o rig.ContainerOptions) pod {
	n.Helper()
	p := harness.Must(n.run(k.PodOptions))(n.T)
	status := harness.Must(n.rig.PodStatus(n.ctx, p.sandbox))(n.T)
	o.Capabilities = k.capabilities
	c := harness.Must(n.rig.RunContainer(n.ctx, p.sandbox, k.PodOptions, o))(n.T)
	n.api = harness.Must(c.PID(n.ctx))(n.T)
	n.apiPod = status.Status.Network.Ip + apiPort
	harness.Eventually(n, func() error { return harness.Contains(c.Said(), "listening") })
	return p
}

func (n *node) network() {
	n.Helper()
	through, err := json.Marshal(conf{Unix: n.agent.path, Abstract: n.agent.abstract, TCP: n.agent.tcp, API: n.apiPod, Known: n.known})
	harness.Check(n.T, err)
	c := rig.Conf{}
	harness.Check(n.T, json.Unmarshal(through, &c))
	delete(c, "PrevResult")
	c["type"] = "remote"
	harness.Check(n.T, n.rig.SetNetworks(n.ctx, rig.Network{Plugins: []rig.Plugin{rig.Bridge(), rig.Use(c)}}))
}

func (n *node) observe(toml string) {
	n.Helper()
	n.spans, n.recording = filepath.Join(n.rig.Dir(), "spans.jsonl"), filepath.Join(n.rig.Dir(), "tenants.rec.gz")
	n.scope = scope.Observe(n.ctx, n, n.rig, scope.Options{Program: program, TOML: fmt.Sprintf(
		"[export.file]\npath = %q\n[sampling]\nper_second = 0\n", n.spans) + toml})
	beside := exec.Command(program, "record", n.recording, "--config", n.scope.Config())
	beside.Stderr = n.Output()
	harness.Check(n.T, beside.Start())
	n.stop = sync.OnceValue(func() error {
		return errors.Join(beside.Process.Signal(os.Interrupt), beside.Wait(), n.scope.Stop())
	})
	n.Cleanup(func() { harness.Check(n.T, n.stop()) })
	harness.Eventually(n, func() error {
		_, err := os.Stat(n.recording)
		return err
	})
	harness.Check(n.T, n.scope.WaitLog(n.ctx, "CNI networks", 1))
}

type pod struct {
	namespace, name, sandbox string
	shim                     int
}

func (n *node) come(namespace, name string) (pod, error) {
	return n.run(rig.PodOptions{Namespace: namespace, Name: name})
}

// run starts a pod and finds its shim, below which its OCI runtime runs.
func (n *node) run(o rig.PodOptions) (pod, error) {
	id, err := n.rig.RunPod(n.ctx, o)
	p := pod{namespace: o.Namespace, name: o.Name, sandbox: id}
	if err != nil {
		return p, err
	}
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		args, _ := os.ReadFile(file)
		program, _ := os.Readlink(filepath.Join(filepath.Dir(file), "exe"))
		if bytes.Contains(args, []byte("\x00-id\x00"+id+"\x00")) && filepath.Base(program) == "containerd-shim-runc-v2" {
			p.shim, err = strconv.Atoi(filepath.Base(filepath.Dir(file)))
		}
	}
	return p, err
}

func (n *node) leave(p pod) error { return n.rig.EndPod(n.ctx, p.sandbox) }
