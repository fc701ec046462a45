//go:build linux

package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/test/harness"
)

// Any process can set CNI_COMMAND; which ones are trusted?
func TestWhoIsTakenForAPlugin(t *testing.T) {
	a := newAlone(t)
	nobody := &syscall.Credential{Uid: 65534, Gid: 65534}
	a.run("a privileged process in CNI_PATH", true, nil)
	a.run("an unprivileged process", false, func(c *exec.Cmd) {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: nobody}
	})
	a.run("a privileged process that is not in CNI_PATH", false, func(c *exec.Cmd) {
		c.Env = replace(c.Env, "CNI_PATH=", "/nowhere:/opt/cni/bin")
	})
	a.run("a privileged process without CNI_PATH", false, func(c *exec.Cmd) {
		c.Env = replace(c.Env, "CNI_PATH=", "")
	})
	a.run("a privileged process with a command that CNI does not know", false, func(c *exec.Cmd) {
		c.Env = replace(c.Env, "CNI_COMMAND=", "EVIL")
	})
	a.run("a process with every capability in a user namespace", false, func(c *exec.Cmd) {
		root := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: root, GidMappings: root}
	})
	a.run("a program that lends its caller root's rights, and runs in an environment of the caller's", false, func(c *exec.Cmd) {
		suid := filepath.Join(filepath.Dir(c.Path), "suid")
		harness.Check(t, harness.CopyFile("/bin/true", suid))
		harness.Check(t, os.Chmod(suid, 0o755|os.ModeSetuid))
		*c = exec.Cmd{Path: suid, Args: []string{"suid"}, Env: c.Env, SysProcAttr: &syscall.SysProcAttr{Credential: nobody}}
	})
	a.run("a process in a PID namespace below", true, func(c *exec.Cmd) {
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	})
	a.settle()
}

// A cniscope in a kind node observes only that node.
func TestANeighbourInAnotherPIDNamespaceIsNotSeen(t *testing.T) {
	a := newAlone(t, "unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
	sibling := func(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID} }
	a.run("a process above", false, nil)
	a.run("a process in a sibling namespace", false, sibling)
	a.run("a process inside", true, a.inside)
	a.settle()
}

// An option names a containerd in a container that serves no known socket.
func TestWhoTheOptionNamesRunsPlugins(t *testing.T) {
	harness.Root(t)
	named := filepath.Join(t.TempDir(), "containerd")
	harness.Check(t, harness.CopyFile("/bin/sh", named))
	start := func(path string) (run func(line string) error) {
		c := exec.Command("unshare", "--mount", path)
		in := harness.Must(c.StdinPipe())(t)
		out := harness.Must(c.StdoutPipe())(t)
		harness.Check(t, c.Start())
		t.Cleanup(func() {
			in.Close()
			harness.Check(t, c.Wait())
		})
		return func(line string) error {
			if _, err := io.WriteString(in, line+"; echo\n"); err != nil {
				return err
			}
			_, err := io.ReadFull(out, make([]byte, 1))
			return err
		}
	}
	runtime, other := start(named), start("/bin/sh")
	harness.Check(t, runtime(":"))
	harness.Check(t, other(":"))
	a := newBeside(t, fmt.Sprintf("callers = [%q]", filepath.Dir(named)+"/contain*"))
	a.run("a child of another one", false, a.through(other))
	a.run("a child of the one that is named", true, a.through(runtime))
	a.settle()
	harness.Eventually(t, func() error { return harness.Contains(a.log(), "probe.callers") })
}

func (a *alone) through(shell func(string) error) func(*exec.Cmd) {
	return func(c *exec.Cmd) {
		harness.Check(a.T, shell("env '"+strings.Join(c.Env, "' '")+"' "+c.Path))
		*c = exec.Cmd{Path: "/bin/true", Args: []string{"true"}}
	}
}

// alone is a cniscope without a runtime, with a test plugin.
type alone struct {
	*testing.T
	dir, file, plugin string
	cniscope          int
	log               func() string
	seen, unseen      []string
}

func newAlone(t *testing.T, in ...string) *alone {
	t.Helper()
	return newBeside(t, "", in...)
}

func newBeside(t *testing.T, options string, in ...string) *alone {
	t.Helper()
	harness.Root(t)
	dir := harness.Must(os.MkdirTemp("", "cniscope-alone"))(t) // unlike t.TempDir, open to other users
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	a := &alone{T: t, dir: dir, file: filepath.Join(dir, "spans"), plugin: filepath.Join(dir, "plugin")}
	harness.Check(t, os.Chmod(dir, 0o755))
	harness.Check(t, harness.CopyFile("/bin/true", a.plugin))
	file := filepath.Join(dir, "cniscope.toml")
	harness.Check(t, os.WriteFile(file, fmt.Appendf(nil,
		"[nri]\nenabled = false\n[runtime]\nsocket = \"/nowhere\"\n[probe]\n%[3]s\n[cni]\nconf_dir = %[1]q\n[state]\ndir = %[1]q\n[export.file]\npath = %[2]q\n[limits]\nsettle = \"50ms\"\n[sampling]\nratio = 1.0\nper_second = 0\n",
		dir, a.file, options), 0o600))
	command := slices.Concat(in, []string{program, "run", "--config", file})
	c := exec.Command(command[0], command[1:]...)
	a.log = harness.Beside(t, c).String
	harness.Eventually(t, func() error { return harness.Contains(a.log(), "observing CNI calls") })
	a.cniscope = c.Process.Pid
	return a
}

func (a *alone) run(name string, seen bool, change func(*exec.Cmd)) {
	a.Helper()
	c := &exec.Cmd{Path: a.plugin, Args: []string{a.plugin}, Env: []string{
		"CNI_COMMAND=ADD", "CNI_CONTAINERID=" + name, "CNI_IFNAME=eth0", "CNI_NETNS=/run/netns/x",
		"CNI_PATH=/opt/cni/bin:" + a.dir, "CNI_ARGS=K8S_POD_NAME=forged",
	}}
	if change != nil {
		change(c)
	}
	harness.Check(a.T, c.Run())
	if seen {
		a.seen = append(a.seen, name)
	} else {
		a.unseen = append(a.unseen, name)
	}
}

func (a *alone) inside(c *exec.Cmd) {
	args := []string{"nsenter", fmt.Sprintf("--pid=/proc/%d/ns/pid_for_children", a.cniscope), c.Path}
	path := harness.Must(exec.LookPath(args[0]))(a.T)
	// Enter first: nsenter itself must not look like a plugin.
	*c = exec.Cmd{Path: path, Args: append(args[:2:2], append([]string{"env"}, append(c.Env, c.Path)...)...)}
}

// settle waits for the expected plugins, the last one run, so that others would be visible.
func (a *alone) settle() {
	a.Helper()
	var found []string
	harness.Eventually(a.T, func() error {
		found = nil
		for _, x := range only(spansIn(a.T, a.file), "call", "") {
			found = append(found, x.text("sandbox.id"))
		}
		for _, name := range a.seen {
			if !slices.Contains(found, name) {
				return fmt.Errorf("%s is not seen, but %q", name, found)
			}
		}
		return nil
	})
	for _, name := range a.unseen {
		if slices.Contains(found, name) {
			a.Errorf("%s is taken for a plugin", name)
		}
	}
	a.Logf("seen: %q; not seen: %q", a.seen, a.unseen)
}

// spansIn reads an OTLP JSON file; a missing file has no spans.
func spansIn(t *testing.T, path string) []*span {
	t.Helper()
	text, err := os.ReadFile(path)
	if !os.IsNotExist(err) {
		harness.Check(t, err)
	}
	var all []*tracepb.ResourceSpans
	for line := range strings.Lines(string(text)) {
		traces := harness.Must(new(ptrace.JSONUnmarshaler).UnmarshalTraces([]byte(line)))(t)
		wire := harness.Must(new(ptrace.ProtoMarshaler).MarshalTraces(traces))(t)
		var data tracepb.TracesData
		harness.Check(t, proto.Unmarshal(wire, &data))
		all = append(all, data.ResourceSpans...)
	}
	return flatten(all)
}

func replace(env []string, prefix, value string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(s string) bool { return strings.HasPrefix(s, prefix) })
	if value == "" {
		return env
	}
	return append(env, prefix+value)
}
