//go:build linux

package doctor

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// The network is reported ready, but no agent listens on the plugin's socket.
func TestTheAgentOfALoadedNetwork(t *testing.T) {
	a := newAsker(t, true)
	asks := "plugin asker of network \"" + a.rig.Networks()[0].Name + "\" asks its agent at " + a.socket
	a.finds("cni-agent", doctor.Problem, asks, "there is no such socket", "in the CNI configuration (socket)", "NetworkReady=true", "no process and no container")

	agent := a.serve()
	a.silent("cni-agent")

	pid := strconv.Itoa(agent.Process.Pid)
	harness.Check(t, agent.Process.Signal(syscall.SIGSTOP))
	a.finds("cni-agent", doctor.Problem, asks, "process "+pid+" (askerd)", "is stopped", "and is stopped", "its last log line: serving", "kill -CONT "+pid)
	a.run("kill", "-CONT", pid) // as the remedy says
	a.silent("cni-agent")

	group := filepath.Join(harness.Unified(t), "cniscope-asker")
	harness.Check(t, os.Mkdir(group, 0o755))
	t.Cleanup(func() { harness.Check(t, os.Remove(group)) })
	write(t, filepath.Join(group, "cgroup.procs"), pid)
	write(t, filepath.Join(group, "cgroup.freeze"), "1")
	a.finds("cni-agent", doctor.Problem, asks, "process "+pid+" (askerd)", "is frozen by its cgroup", "echo 0 > "+group+"/cgroup.freeze")
	a.run("sh", "-c", "echo 0 > "+group+"/cgroup.freeze")
	a.silent("cni-agent")

	harness.Check(t, agent.Process.Kill())
	_ = agent.Wait()
	a.finds("cni-agent", doctor.Problem, asks, "no process listens there", "connection refused", "the socket was made at")

	a.container("kube-system", "asker-x7k2p", runs("agent", 3, "echo no route to the API server; exit 1", filepath.Dir(a.socket), "/run/asker"))
	a.finds("cni-agent", doctor.Problem, "container agent of pod kube-system/asker-x7k2p: exited with code 1", "its last log line: no route to the API server",
		"kubectl -n kube-system logs asker-x7k2p -c agent", "delete pod asker-x7k2p")

	a.serve()
	a.silent("cni-agent")
}

// An agent that was just started again is waited for, and what it said last time is shown.
func TestAnAgentThatStartsAgain(t *testing.T) {
	a := newAsker(t, true)
	o := rig.PodOptions{Namespace: "kube-system", Name: "asker-x7k2p", HostNetwork: true, Config: func(c *cri.PodSandboxConfig) { c.Hostname = "" }}
	logs := filepath.Join(a.rig.PodConfig(o).LogDirectory, "agent")
	harness.Check(t, os.MkdirAll(logs, 0o755))
	write(t, filepath.Join(logs, "0.log"), "2026-11-27T00:00:00Z stderr F fatal: no route to 10.96.0.1\n")
	agent := runs("agent", 1, "sleep 600", filepath.Dir(a.socket), "/run/asker")
	agent.LogPath = "agent/1.log"
	a.containerIn(o, agent)
	a.finds("cni-agent", doctor.Warning, "there is no such socket", "the last log line before the restart: fatal: no route to 10.96.0.1", "wait: container agent started ", "delete pod asker-x7k2p")
}

// The running cniscope has seen the connection of a plugin that doctor does not know.
func TestTheAgentThatARunningCniscopeSaw(t *testing.T) {
	a := newAsker(t, false)
	a.toml += "[slow]\nhung = \"1s\"\n"
	scope.Observe(a.ctx, t, a.rig, scope.Options{Program: program})
	if found := of(a.examine(), "cni-agent"); len(found) > 0 {
		t.Errorf("nobody knows yet whom it asks: %+v", found)
	}
	agent := a.serve()
	_, err := a.rig.RunPod(a.ctx, rig.PodOptions{Namespace: "shop", Name: "web-0"})
	harness.Check(t, err)
	harness.Until(a, "cniscope has seen it", func() bool { return state(a.examine(), "cni-agent") == doctor.OK })
	a.silent("cni-agent", "failed-calls")

	// The agent accepts connections but does not answer.
	write(t, a.mute, "")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = a.rig.RunPod(a.ctx, rig.PodOptions{Namespace: "shop", Name: "web-1"}) // ends by itself, with or without an error
	}()
	harness.Until(a, "the agent is named", func() bool { return len(of(a.examine(), "cni-agent")) > 0 })
	a.finds("cni-agent", doctor.Problem, "asks its agent at "+a.socket, "the agent accepts connections, but does not answer 1 call", "a running cniscope saw", "pod shop/web-1 has waited for the agent", "process "+strconv.Itoa(agent.Process.Pid))
	harness.Check(t, os.Remove(a.mute))
	<-done
	harness.Until(a, "it answers again", func() bool { return len(of(a.examine(), "cni-agent")) == 0 })

	harness.Check(t, agent.Process.Kill())
	_ = agent.Wait()
	a.finds("cni-agent", doctor.Warning, "no process listens there", "cniscope last saw an answer at ", "from askerd, process "+strconv.Itoa(agent.Process.Pid), "start the plugin's agent again (last seen: askerd)")
	if _, err := a.rig.RunPod(a.ctx, rig.PodOptions{Namespace: "shop", Name: "web-2"}); err == nil {
		t.Fatal("a pod got a network from nobody")
	}
	harness.Until(a, "the failure is known", func() bool { return len(of(a.examine(), "failed-calls")) > 0 })
	a.finds("cni-agent", doctor.Problem, "no process listens there", "1 call fail there since")
	a.finds("failed-calls", doctor.Warning, "1 CNI ADD of network \""+a.rig.Networks()[0].Name+"\"", "pod shop/web-2, plugin asker")

	a.serve()
	a.silent("cni-agent")
	_, err = a.rig.RunPod(a.ctx, rig.PodOptions{Namespace: "shop", Name: "web-3"})
	harness.Check(t, err)
	harness.Until(a, "that one succeeded is known", func() bool { return of(a.examine(), "failed-calls")[0].Level == doctor.Note })
}

type asker struct {
	*node
	program, socket, mute string
}

// named: the plugin's configuration names the socket.
func newAsker(t *testing.T, named bool) *asker {
	t.Helper()
	const dir = "/run/cniscope-asker" // must be a fixed name: a random one would be redacted
	harness.Check(t, os.RemoveAll(dir))
	harness.Check(t, os.Mkdir(dir, 0o755))
	t.Cleanup(func() { harness.Check(t, os.RemoveAll(dir)) })
	a := &asker{program: filepath.Join(dir, "askerd"), socket: filepath.Join(dir, "run", "agent.sock"), mute: filepath.Join(dir, "mute")}
	harness.Check(t, os.Mkdir(filepath.Dir(a.socket), 0o755))
	data := built(t, a.program, askerSource, "-ldflags", "-X main.socket="+a.socket+" -X main.mute="+a.mute)
	conf := rig.Conf{"type": "asker"}
	if named {
		conf["socket"] = a.socket
	}
	a.node = newNode(t, rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(), rig.Use(conf)}}},
		Plugins:  map[string][]byte{"asker": data},
	})
	return a
}

func (a *asker) serve() *exec.Cmd {
	a.Helper()
	log, err := os.CreateTemp(a.TempDir(), "log")
	harness.Check(a.T, err)
	defer log.Close()
	cmd := exec.Command(a.program)
	cmd.Stderr = log
	harness.Check(a.T, cmd.Start())
	a.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	harness.Until(a, "it listens", func() bool {
		said, err := os.ReadFile(log.Name())
		harness.Check(a.T, err)
		return len(said) > 0
	})
	return cmd
}

// askerSource is the plugin and, without CNI_COMMAND, its agent, mute while the file mute exists.
const askerSource = `package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"time"
)

var socket, mute string

func main() {
	if os.Getenv("CNI_COMMAND") == "" {
		serve()
	}
	if os.Getenv("CNI_COMMAND") != "ADD" {
		return
	}
	var conf struct{ PrevResult json.RawMessage }
	_ = json.NewDecoder(os.Stdin).Decode(&conf)
	c, err := net.Dial("unix", socket)
	if err == nil {
		_, _ = c.Write([]byte("add"))
		_, err = c.Read(make([]byte, 2))
	}
	if err != nil {
		fmt.Printf("{\"cniVersion\":\"1.0.0\",\"code\":11,\"msg\":%q}", err.Error())
		os.Exit(1)
	}
	_, _ = os.Stdout.Write(conf.PrevResult)
}

func serve() {
	_ = os.Remove(socket)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(os.Stderr, "serving")
	for {
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		go func() {
			defer c.Close()
			if n, _ := c.Read(make([]byte, 3)); n == 0 {
				return
			}
			for _, err := os.Stat(mute); err == nil; _, err = os.Stat(mute) {
				time.Sleep(50 * time.Millisecond)
			}
			_, _ = c.Write([]byte("ok"))
		}()
	}
}
`
