//go:build linux

package cnis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/kube"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// Names of node and cluster. The network is private, so ports are the usual ones.
const (
	nodeName    = "node1"
	nodeAddress = "10.20.0.1"
	gateway     = "10.20.0.254"
	podCIDR     = "10.244.0.0/24"
	clusterCIDR = "10.244.0.0/16"
	services    = "10.96.0.0/24"
	clang       = "/usr/lib/llvm-19/bin"
	rigs        = "/run/cniscope-rig"
)

type node struct {
	*testing.T
	ctx   context.Context
	rig   *rig.Rig
	scope *scope.Scope
	api   *kube.API
	tools string // directory of built tools
	spans string // cniscope's span file
	fault string

	running    map[string]started
	stopRecord func()
}

type started struct {
	*rig.Daemon
	logged int64
}

// ownSysctls are global sysctls that these programs write; files cover them.
var ownSysctls = []string{
	"kernel/timer_migration", "kernel/unprivileged_bpf_disabled", "kernel/panic", "kernel/panic_on_oops",
	"net/core/bpf_jit_enable", "vm/overcommit_memory",
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := newMachine(t, "cilium/cilium-agent", "cilium/cilium-cni", "kube-proxy")
	n.plugin("cilium/cilium-cni", "cilium-cni")
	return n
}

func (n *node) plugin(built, name string) {
	n.Helper()
	harness.Check(n.T, harness.CopyFile(filepath.Join(n.tools, built), filepath.Join(n.rig.CNIBinDir(), name)))
}

func newMachine(t *testing.T, programs ...string) *node {
	t.Helper()
	n := newHost(t, rig.Options{}, append(programs, "kube-apiserver")...)
	n.controlPlane()
	n.kubelet()
	return n
}

// newHost is a machine without a cluster.
func newHost(t *testing.T, o rig.Options, programs ...string) *node {
	t.Helper()
	n := &node{T: t, ctx: harness.Context(t), running: map[string]started{}}
	var err error
	n.tools, err = rig.Tools(programs...)
	if errors.Is(err, rig.ErrNoTools) {
		t.Skipf("%v: run `make tools-cnis` first", err)
	}
	harness.Check(t, err)
	n.ownMounts()
	if o.Usual {
		n.ownFolders()
	}
	n.ownNetwork()
	o.Networks = []rig.Network{} // plugins write their own
	o.Ready, o.Env = 2*time.Minute, []string{"PATH=" + os.Getenv("PATH")}
	n.rig = scope.Rig(n.ctx, t, o)
	t.Cleanup(n.end)
	n.fault = n.folder("fault")
	return n
}

func (n *node) ownMounts() {
	n.Helper()
	files := n.TempDir()
	harness.Check(n.T, unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""))
	// Rigs are identified by their directories, which stay shared.
	harness.Check(n.T, os.MkdirAll(rigs, 0o711))
	shared := harness.Must(os.Open(rigs))(n.T)
	defer shared.Close()
	harness.Check(n.T, unix.Mount("tmpfs", "/run", "tmpfs", 0, ""))
	harness.Check(n.T, os.Mkdir(rigs, 0o711))
	harness.Check(n.T, unix.Mount(fmt.Sprintf("/proc/self/fd/%d", shared.Fd()), rigs, "", unix.MS_BIND, ""))
	for _, dir := range []string{"/run/lock", "/run/netns"} {
		harness.Check(n.T, os.Mkdir(dir, 0o755))
	}
	for unix.Unmount("/sys/fs/bpf", unix.MNT_DETACH) == nil { // Cilium's agent requires a single mount
	}
	harness.Check(n.T, unix.Mount("bpf", "/sys/fs/bpf", "bpf", 0, ""))
	for _, key := range ownSysctls {
		value, err := os.ReadFile("/proc/sys/" + key)
		if os.IsNotExist(err) {
			continue
		}
		harness.Check(n.T, err)
		file := filepath.Join(files, strings.ReplaceAll(key, "/", "."))
		harness.Check(n.T, os.WriteFile(file, value, 0o644))
		harness.Check(n.T, unix.Mount(file, "/proc/sys/"+key, "", unix.MS_BIND, ""))
	}
}

func (n *node) ownNetwork() {
	n.Helper()
	for line := range strings.Lines(`
ip link set lo up
ip netns add outside
ip link add eth0 type veth peer name wire netns outside
ip addr add ` + nodeAddress + `/24 dev eth0
ip link set eth0 up
ip route add default via ` + gateway + ` dev eth0
ip -n outside addr add ` + gateway + `/24 dev wire
ip -n outside link set wire up
`) {
		if f := strings.Fields(line); len(f) > 0 {
			n.run(f...)
		}
	}
	harness.Check(n.T, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0))
}

func (n *node) kubelet() {
	n.Helper()
	l := harness.Must(net.Listen("tcp", "127.0.0.1:10248"))(n.T)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok"))
	})}
	go func() { _ = server.Serve(l) }()
	n.Cleanup(func() { _ = server.Close() })
}

func (n *node) run(command ...string) string {
	n.Helper()
	out, err := exec.CommandContext(n.ctx, command[0], command[1:]...).CombinedOutput()
	if err != nil {
		n.Fatalf("%s: %v: %s", strings.Join(command, " "), err, out)
	}
	return string(out)
}

func (n *node) folder(name string) string {
	n.Helper()
	dir := filepath.Join(n.rig.Dir(), name)
	harness.Check(n.T, os.MkdirAll(dir, 0o755))
	return dir
}

func (n *node) file(name, text string) string {
	n.Helper()
	path := filepath.Join(n.rig.Dir(), name)
	harness.Check(n.T, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (n *node) start(name string, ready func(context.Context) error, command ...string) {
	n.Helper()
	path := strings.Join([]string{n.fault, n.tools, clang, os.Getenv("PATH")}, ":")
	env := []string{"PATH=" + path, "HOME=" + n.rig.Dir(), "TMPDIR=" + n.folder("tmp"), "K8S_NODE_NAME=" + nodeName}
	began, logged := time.Now(), int64(0)
	if log, err := os.Stat(filepath.Join(n.rig.Dir(), name+".log")); err == nil {
		logged = log.Size()
	}
	d := harness.Must(n.rig.Beside(n.ctx, name, env, command, ready))(n.T)
	n.running[name] = started{d, logged}
	n.Logf("%s is ready after %s", name, time.Since(began).Round(time.Millisecond))
}

func (n *node) signal(name string, s unix.Signal) {
	n.Helper()
	harness.Check(n.T, unix.Kill(n.running[name].PID(), s))
}

func (n *node) kill(name string) {
	n.Helper()
	d, runs := n.running[name]
	if !runs {
		return
	}
	_ = unix.Kill(d.PID(), unix.SIGKILL)
	d.Stop()
	delete(n.running, name)
}

func (n *node) end() {
	if n.stopRecord != nil {
		n.stopRecord()
	}
	if n.scope != nil {
		harness.Check(n.T, n.scope.Stop())
		n.keep("cniscope", n.scope.Log())
		n.keep("spans", n.spans)
	}
	n.rig.Kill9Containerd() // without an agent no DEL succeeds
	for name, d := range n.running {
		n.kill(name)
		n.keep(name, d.Log())
	}
	n.keep("containerd", n.rig.ContainerdLog())
}

func (n *node) keep(name, file string) {
	if dir := os.Getenv("CNISCOPE_TEST_LOGS"); dir != "" {
		_ = harness.CopyFile(file, filepath.Join(dir, n.Name()+"."+name+".log"))
	}
}

func (n *node) logOf(name string) string {
	n.Helper()
	text := harness.Must(os.ReadFile(n.running[name].Log()))(n.T)
	return string(text[n.running[name].logged:])
}

func untilThen(deadline time.Time) time.Duration { return max(time.Until(deadline), time.Second) }
