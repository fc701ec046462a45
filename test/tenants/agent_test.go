//go:build linux

package tenants

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/tied"
)

// The plugin of these tests uses an agent, connects to an API server, and tells the tenants who the
// current victim is.

type conf struct {
	Unix, Abstract, TCP string
	API                 string
	Known               string
	PrevResult          json.RawMessage
}

type request struct{ Command, Container, NetNS, Pod string }

func remote() int {
	var c conf
	if err := json.NewDecoder(os.Stdin).Decode(&c); err != nil {
		return 1
	}
	r := request{os.Getenv("CNI_COMMAND"), os.Getenv("CNI_CONTAINERID"), os.Getenv("CNI_NETNS"), arg("K8S_POD_NAME")}
	if r.Command == "ADD" || r.Command == "DEL" {
		if err := ask(c, r); err != nil && r.Command == "ADD" {
			fmt.Printf(`{"cniVersion":"1.0.0","code":11,"msg":%q}`, err.Error())
			return 1
		}
	}
	if r.Command == "ADD" {
		fmt.Print(string(c.PrevResult))
	}
	return 0
}

func arg(name string) string {
	for pair := range strings.SplitSeq(os.Getenv("CNI_ARGS"), ";") {
		if key, value, _ := strings.Cut(pair, "="); key == name {
			return value
		}
	}
	return ""
}

// ask opens every kind of connection to the agent, and sends the request over one of them.
func ask(c conf, r request) error {
	var wires []net.Conn
	pairs := [][2]string{}
	for _, to := range [][2]string{{"unix", c.Unix}, {"tcp", c.TCP}, {"unix", c.Abstract}, {"tcp", c.API}} {
		w, err := net.DialTimeout(to[0], to[1], 10*time.Second)
		if err != nil {
			return err
		}
		defer w.Close()
		wires = append(wires, w)
		if to[0] == "tcp" {
			pairs = append(pairs, [2]string{w.LocalAddr().String(), w.RemoteAddr().String()})
		}
	}
	text, err := json.Marshal(map[string]any{
		"Container": r.Container, "NetNS": r.NetNS, "IfName": os.Getenv("CNI_IFNAME"), "Namespace": arg("K8S_POD_NAMESPACE"), "Pod": r.Pod,
		"Connections": pairs, "Sockets": []string{c.Unix, c.Abstract}, "Path": os.Getenv("CNI_PATH"),
	})
	if err != nil {
		return err
	}
	next := filepath.Join(c.Known, r.Container)
	if err := os.WriteFile(next, text, 0o644); err != nil {
		return err
	}
	if err := os.Rename(next, filepath.Join(c.Known, "call")); err != nil {
		return err
	}
	wire := wires[int(r.Container[0])%2]
	if err := json.NewEncoder(wire).Encode(r); err != nil {
		return err
	}
	var answer struct{ Error string }
	if err := json.NewDecoder(wire).Decode(&answer); err != nil {
		return err
	}
	if answer.Error != "" {
		return fmt.Errorf("the agent: %s", answer.Error)
	}
	return nil
}

type agentd struct {
	bin     string
	mu      sync.Mutex
	release chan struct{}
}

// held is the prefix of the name of a pod that the agent delays.
const held = "held"

func serveAgent(path, abstract, bin string) int {
	a := &agentd{bin: bin, release: make(chan struct{})}
	var tcp string
	for _, at := range [][2]string{{"unix", path}, {"unix", abstract}, {"tcp", "127.0.0.1:0"}} {
		l, err := net.Listen(at[0], at[1])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		tcp = l.Addr().String()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go a.serve(c)
			}
		}()
	}
	fmt.Println("ready", tcp)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		a.release <- struct{}{}
	}
	return 0
}

func (a *agentd) serve(c net.Conn) {
	defer c.Close()
	var r request
	if json.NewDecoder(c).Decode(&r) != nil {
		return
	}
	answer := map[string]string{}
	if err := a.do(r); err != nil {
		answer["Error"] = err.Error()
	}
	_ = json.NewEncoder(c).Encode(answer)
}

func (a *agentd) do(r request) error {
	if r.Command == "ADD" && strings.HasPrefix(r.Pod, held) {
		a.say("held", r.Container)
		<-a.release
	}
	port := r.Pod + "-568022"
	for _, args := range [][]string{
		{"iptables", "-t", "nat", "-C", "POSTROUTING"},
		{"ovs-vsctl", "add-port", "br-int", port, "--", "set", "Interface", port, "external_ids:container=" + r.Container},
		{"ovs-ofctl", "add-flow", "br-int", "eth0", r.Container[:12]},
	} {
		cmd := exec.Command(filepath.Join(a.bin, args[0]), args[1:]...)
		if err := cmd.Start(); err != nil {
			return err
		}
		a.say("ran", strconv.Itoa(cmd.Process.Pid), r.Container)
		if err := cmd.Wait(); err != nil {
			return err
		}
	}
	return nil
}

func (a *agentd) say(words ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fmt.Println(strings.Join(words, " "))
}

type agent struct {
	cmd            *exec.Cmd
	in             io.Writer
	path, abstract string
	tcp            string
	held           chan string

	mu  sync.Mutex
	ran map[int]map[string]bool // ran are the containers by pid of a command.
}

func startAgent(t *testing.T, env string) *agent {
	t.Helper()
	dir := t.TempDir()
	for name, body := range map[string]string{"ovs-vsctl": "sleep 0.1", "ovs-ofctl": ":", "iptables": ":"} {
		harness.Check(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755))
	}
	self := harness.Must(os.Executable())(t)
	named := filepath.Join(dir, "agentd")
	harness.Check(t, os.Symlink(self, named))
	a := &agent{path: filepath.Join(dir, "agent.sock"), abstract: "@" + dir, held: make(chan string, 1), ran: map[int]map[string]bool{}}
	a.cmd = exec.Command(named, a.path, a.abstract, dir)
	a.cmd.Stderr = os.Stderr
	a.cmd.Env = append(os.Environ(), env)
	a.in = harness.Must(a.cmd.StdinPipe())(t)
	out := harness.Must(a.cmd.StdoutPipe())(t)
	harness.Check(t, tied.Start(a.cmd))
	ready, said := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(said)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			switch f := strings.Fields(lines.Text()); f[0] {
			case "ready":
				a.tcp = f[1]
				close(ready)
			case "held":
				a.held <- f[1]
			case "ran":
				a.note(f[1], f[2])
			}
		}
	}()
	t.Cleanup(func() {
		_ = a.cmd.Process.Kill()
		<-said
		_ = a.cmd.Wait()
	})
	select {
	case <-ready:
	case <-said:
		t.Fatal("the agent does not serve")
	}
	return a
}

func (a *agent) note(text, container string) {
	pid, _ := strconv.Atoi(text)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ran[pid] == nil { // pids are reused
		a.ran[pid] = map[string]bool{}
	}
	a.ran[pid][container] = true
}

func (a *agent) pid() int { return a.cmd.Process.Pid }

func (a *agent) goOn() error {
	_, err := fmt.Fprintln(a.in)
	return err
}

func (a *agent) did(pid int, container string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ran[pid][container]
}
