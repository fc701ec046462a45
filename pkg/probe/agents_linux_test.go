package probe

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/agents"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/probe/trust"
	"github.com/cniscope/cniscope/test/harness"
)

const (
	// runs names the command that an agent runs for each call.
	runs = "RUNS"
	// late: before it accepts a call it waits for this file, and runs a command.
	late = "LATE"
	// It runs a command when this file exists, without a call.
	meanwhile = "MEANWHILE"
	// enters is a network namespace's file, in which it sets forwarding for each call.
	enters = "ENTERS"
	// further: for each call it calls another agent.
	further = "FURTHER"
	// locked is a file that it locks besides.
	locked = "LOCKS"
)

// agentAct runs a command or a plugin for each call, and answers.
func agentAct(address string) error {
	l, err := net.Listen("unix", address)
	if err != nil {
		return err
	}
	if file := os.Getenv(locked); file != "" {
		go func() { _ = acts["lock"](file) }()
	}
	if file := os.Getenv(late); file != "" {
		for _, err := os.Stat(file); err != nil; _, err = os.Stat(file) {
			time.Sleep(10 * time.Millisecond)
		}
		if err := exec.Command("true").Run(); err != nil {
			return err
		}
	}
	if file := os.Getenv(meanwhile); file != "" {
		go func() {
			for _, err := os.Stat(file); err != nil; _, err = os.Stat(file) {
				time.Sleep(10 * time.Millisecond)
			}
			_ = exec.Command("sh", "-c", "uname; exit 0").Run()
			_ = os.Remove(file)
		}()
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		cmd := exec.Command("sleep", "0.05")
		if plugin := os.Getenv(runs); plugin != "" {
			cmd = exec.Command(plugin)
			cmd.Stdin = strings.NewReader("{}")
		}
		if file := os.Getenv(enters); file != "" {
			if err := forwardIn(file); err != nil {
				return err
			}
		}
		if next := os.Getenv(further); next != "" {
			up, err := net.Dial("unix", next)
			if err != nil {
				return err
			}
			_, _ = up.Read(make([]byte, 1))
			up.Close()
		} else if err := cmd.Run(); err != nil {
			return err
		}
		_, _ = c.Write([]byte("x"))
		c.Close()
	}
}

func forwardIn(file string) error {
	return harness.Within(file, func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1\n"), 0) })
}

func TestWhatAnAgentRunsWhileNobodyCallsItIsTold(t *testing.T) {
	dir := t.TempDir()
	address, file := filepath.Join(dir, "agent.sock"), filepath.Join(dir, "go")
	agent := startAgent(t, address, meanwhile+"="+file)
	var programs []string
	observe(t, func(o *observed) {
		o.agents = []int{agent.Pid}
		call := func() { harness.Check(t, acting(t, "dial", "unix "+address).Run()) }
		call()
		// Foreign calls keep it followed. What it runs is then traced, which is as good.
		over := func(b event.Body) bool { a, is := b.(*event.Agent); return is && a.Over }
		harness.Until(t, "it is followed no more", func() bool { return o.any(over) || o.foreign() })
		harness.Check(t, os.WriteFile(file, nil, 0o600))
		harness.Until(t, "it ran its command", func() bool { _, err := os.Stat(file); return os.IsNotExist(err) })
		call()
		foreign := o.foreign()
		o.until(t, "what it ran", func(b event.Body) bool {
			if a, is := b.(*event.Agent); is && len(a.Programs) > 0 {
				programs = a.Programs
			}
			e, is := b.(*event.Exec)
			return programs != nil || is && e.Name == "uname" && foreign
		})
	})
	if programs != nil && !slices.Equal(programs, []string{"sh", "uname"}) { // sleep belongs to a call
		t.Errorf("%q", programs)
	}
}

func startAgent(t *testing.T, address string, env ...string) *os.Process {
	t.Helper()
	return startAgentAs(t, address, nil, env...)
}

func startAgentAs(t *testing.T, address string, attr *syscall.SysProcAttr, env ...string) *os.Process {
	t.Helper()
	agent := startAct(t, "agent", address, attr, env...)
	harness.Listens(t, agent.Pid, address)
	return agent
}

func openFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	harness.Check(t, errors.Join(os.Chmod(dir, 0o777), os.Chmod(filepath.Dir(dir), 0o755)))
	return dir
}

func TestWhatAnAgentRunsForAPlugin(t *testing.T) {
	address := filepath.Join(t.TempDir(), "agent.sock")
	agent := startAgent(t, address)
	o := observe(t, func(o *observed) {
		o.agents = []int{agent.Pid}
		harness.Check(t, acting(t, "dial", "unix "+address).Run())
		harness.Until(t, "no process is followed", func() bool { return trackedOf(o.probe, o) == 0 })
	})
	accepts := all[*event.Accept](o)
	if len(accepts) != 1 || int(accepts[0].Agent.PID) != agent.Pid {
		t.Fatalf("accepted: %s", printed(o, accepts))
	}
	server := accepts[0].Agent.Process
	for _, e := range o.execs() {
		if e.Name == "sleep" {
			if e.Parent != server || o.exit(e.Process) == nil {
				t.Errorf("%+v, its end: %+v", e, o.exit(e.Process))
			}
			states := statesOf(o, server)
			if n := len(states); n < 3 || states[0].Over || !states[n-1].Over {
				t.Errorf("the agent's states: %+v", states)
			}
			return
		}
	}
	t.Errorf("the agent's command was not seen: %s", printed(o, o.execs()))
}

// statesOf returns the samples of one process. A plugin that runs for long on a busy machine is sampled, too.
func statesOf(o *observed, p event.Process) []*event.Agent {
	return slices.DeleteFunc(all[*event.Agent](o), func(a *event.Agent) bool { return a.Process != p })
}

func TestTheNamespaceThatAnAgentOpens(t *testing.T) {
	name := "cni-" + strings.ToLower(rand.Text())[:8] + "-0a1b2c"
	if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
		t.Skipf("no named namespaces here: %s", out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", name).Run() })
	address := filepath.Join(t.TempDir(), "agent.sock")
	agent := startAgent(t, address, enters+"=/var/run/netns/"+name)
	cmd := acting(t, "dial", "unix "+address)
	cmd.Env[slices.Index(cmd.Env, "CNI_NETNS=/run/netns/c1")] = "CNI_NETNS=/run/netns/" + name
	// Other tests' calls name another namespace for the same container.
	o := observeProbe(t, Options{}, func(_ *Probe, o *observed) {
		o.agents = []int{agent.Pid}
		harness.Check(t, cmd.Run())
	})
	settings := all[*event.Setting](o)
	if len(settings) != 1 || !slices.Equal(settings[0].Mentions, []string{container}) {
		t.Errorf("%s", printed(o, settings))
	}
}

func TestAPluginThatAnAgentRunsIsARunOfItsOwn(t *testing.T) {
	address := filepath.Join(t.TempDir(), "agent.sock")
	run := plugin(t, "delegated", "true")
	agent := startAgent(t, address, append(run.Env, runs+"="+run.Path)...)
	o := observe(t, func(o *observed) {
		o.agents = []int{agent.Pid}
		harness.Check(t, acting(t, "dial", "unix "+address).Run())
	})
	execs := o.execs()
	i := slices.IndexFunc(execs, func(e *event.Exec) bool { return e.Name == "delegated" })
	if i < 0 || !execs[i].Root || !execs[i].InPath || execs[i].Call == nil || int(execs[i].ParentPID) != agent.Pid {
		t.Errorf("%d of %s", i, printed(o, execs))
	}
}

func trackedOf(p *Probe, o *observed) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	kernel.Each(p.kernel.Life.Processes, func(_ *uint32, entry *kernel.LifeProcess) {
		if o.ours.Mine(kernel.ProcessOf(entry.Self)) {
			n++
		}
	})
	var socket uint64
	var c kernel.InsideConn
	for entries := p.kernel.Inside.Conns.Iterate(); entries.Next(&socket, &c); {
		if o.ours.Mine(kernel.ProcessOf(c.P.Self)) {
			n++
		}
	}
	return n
}

func TestAnAgentThatIsNotCalledIsNotFollowed(t *testing.T) {
	address := filepath.Join(t.TempDir(), "agent.sock")
	startAgent(t, address)
	o := observe(t, func(*observed) {
		c := harness.Must(net.Dial("unix", address))(t)
		defer c.Close()
		_, _ = c.Read(make([]byte, 1))
	})
	harness.Equal(t, len(o.execs()), 0, "execs")
}

func TestAnAgentThatDoesNotAcceptYet(t *testing.T) {
	address := filepath.Join(t.TempDir(), "agent.sock")
	agent := startAgent(t, address, late+"="+address+".now")
	o := observe(t, func(o *observed) {
		o.agents = []int{agent.Pid}
		caller := acting(t, "dial", "unix "+address)
		harness.Check(t, caller.Start())
		o.until(t, "that it accepts", func(b event.Body) bool { _, is := b.(*event.Accept); return is })
		harness.Check(t, errors.Join(os.WriteFile(address+".now", nil, 0o600), caller.Wait()))
	})
	accepts := all[*event.Accept](o)
	if len(accepts) != 2 || !accepts[0].Listens || accepts[1].Listens || accepts[0].Agent.Process != accepts[1].Agent.Process || int(accepts[1].Agent.PID) != agent.Pid {
		t.Fatalf("accepted: %s", printed(o, accepts))
	}
	if !slices.ContainsFunc(o.execs(), func(e *event.Exec) bool { return e.Name == "true" && e.Parent == accepts[0].Agent.Process }) {
		t.Errorf("what it ran before it accepted was not seen: %s", printed(o, o.execs()))
	}
}

func TestAnAgentThatIsNamed(t *testing.T) {
	address := filepath.Join(t.TempDir(), "agent.sock")
	agent := startAgent(t, address)
	name := agents.Program(uint32(agent.Pid))
	observeProbe(t, Options{Agents: []string{name}}, func(p *Probe, _ *observed) {
		// Other servers with that name are followed also.
		cmd := plugin(t, "any", "exec sleep 60")
		harness.Check(t, cmd.Start())
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		var entry kernel.LifeProcess
		harness.Until(t, "it is followed", func() (ok bool) { entry, ok = entryOf(p, agent.Pid); return ok })
		if entry.Agent != 1 || entry.Home == 0 || entry.Home != trust.Namespace(uint32(agent.Pid), "net") {
			t.Errorf("%+v", entry)
		}
	})
}

// An agent that waited for a lock before it was called is seen to wait when it blocks again: at a second holder.
func TestTheLockThatAnAgentWaitedForBefore(t *testing.T) {
	dir := t.TempDir()
	file, address := filepath.Join(dir, "lock"), filepath.Join(dir, "agent.sock")
	var holders [2]*os.File
	for i := range holders {
		holders[i] = harness.Must(os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600))(t)
		defer holders[i].Close()
		harness.Check(t, unix.Flock(int(holders[i].Fd()), unix.LOCK_SH))
	}
	harness.Check(t, os.WriteFile(dir+"/work", []byte("#!/bin/sh\nuntil [ -e "+dir+"/go ]; do sleep 0.01; done\n"), 0o755))
	agent := startAgent(t, address, locked+"="+file, runs+"="+dir+"/work")
	harness.Until(t, "it waits for the lock", func() bool { return waitsForALock(agent.Pid) })
	waits := func(b event.Body) bool {
		w, is := b.(*event.Wait)
		return is && w.Kind == event.WaitLock && !w.Released
	}
	o := observe(t, func(o *observed) {
		o.agents = []int{agent.Pid}
		cmd := acting(t, "dial", "unix "+address)
		harness.Check(t, cmd.Start())
		o.until(t, "it works", func(b event.Body) bool { e, is := b.(*event.Exec); return is && e.Name == "work" })
		harness.Check(t, unix.Flock(int(holders[0].Fd()), unix.LOCK_UN))
		harness.Until(t, "it waits again", func() bool { return waitsForALock(agent.Pid) })
		time.Sleep(5 * time.Millisecond) // long enough to be reported
		harness.Check(t, unix.Flock(int(holders[1].Fd()), unix.LOCK_UN))
		o.until(t, "its wait", waits)
		harness.Check(t, os.WriteFile(dir+"/go", nil, 0o600))
		harness.Check(t, cmd.Wait())
	})
	for _, w := range all[*event.Wait](o) {
		if waits(w) && !samePath(w.Path, file) {
			t.Errorf("%+v, want %s", w, file)
		}
	}
}

func TestHowFarServersAreFollowed(t *testing.T) {
	for depth, want := range map[int]int{1: 0, 2: 1} {
		probing := ownProbing(t, Options{Depth: depth})
		dir := t.TempDir()
		third := startAgent(t, filepath.Join(dir, "3.sock"))
		second := startAgent(t, filepath.Join(dir, "2.sock"))
		through := startAgent(t, filepath.Join(dir, "2b.sock"), further+"="+filepath.Join(dir, "3.sock"))
		for address, n := range map[string]int{
			further + "=" + filepath.Join(dir, "2.sock"):  want, // plugin, agent, second: its command
			further + "=" + filepath.Join(dir, "2b.sock"): 0,    // plugin, agent, through, third
		} {
			sock := filepath.Join(dir, fmt.Sprint("1-", n, len(address), ".sock"))
			first := startAgent(t, sock, address)
			o := probing.observe(t, func(o *observed) {
				o.agents = []int{first.Pid, second.Pid, through.Pid, third.Pid}
				harness.Check(t, acting(t, "dial", "unix "+sock).Run())
			})
			ran := 0
			for _, e := range o.execs() {
				if e.Name == "sleep" {
					ran++
				}
			}
			harness.Equal(t, ran, n, "depth", depth, address, "commands")
		}
	}
}
