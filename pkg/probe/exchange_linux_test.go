package probe

import (
	"fmt"
	"io"
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
	"github.com/cniscope/cniscope/test/harness"
)

var talkers = map[string]func(string) error{
	// "network address" of a peer that it asks for each call. It listens at LISTENS.
	"asker": func(peer string) error {
		network, address, _ := strings.Cut(peer, " ")
		up, err := net.Dial(network, address)
		if err != nil {
			return err
		}
		return accepting("unix", os.Getenv(listens), func(c net.Conn) error {
			defer c.Close()
			for range 1 + len(os.Getenv(again)) {
				if _, err := up.Write([]byte("may I?")); err != nil {
					return err
				}
				if _, err := up.Read(make([]byte, 64)); err != nil {
					return err
				}
			}
			_, _ = c.Write([]byte("x"))
			return nil
		})
	},
	// It listens there, and forwards requests to the client that said hello, and answers back.
	"middle": func(address string) error {
		far := make(chan net.Conn, 1)
		return accepting(os.Getenv(listens), address, func(c net.Conn) error {
			go func() {
				b := make([]byte, 64)
				for n, err := c.Read(b); err == nil; n, err = c.Read(b) {
					switch string(b[:n]) {
					case "hello":
						far <- c
						return
					case "?":
						continue
					}
					up := <-far
					_, _ = up.Write(b[:n])
					n, _ = up.Read(b)
					far <- up
					_, _ = c.Write(b[:n])
				}
			}()
			return nil
		})
	},
	// "network address": it says hello there, and answers requests.
	"switch": func(to string) error {
		network, address, _ := strings.Cut(to, " ")
		c, err := net.Dial(network, address)
		if err != nil {
			return err
		}
		_, _ = c.Write([]byte("hello"))
		_, err = io.Copy(c, c)
		return err
	},
	// It listens there, and answers requests, usually after 20 ms.
	"answerer": func(address string) error {
		return accepting(os.Getenv(listens), address, func(c net.Conn) error {
			go func() {
				b := make([]byte, 64)
				for n, err := c.Read(b); err == nil; n, err = c.Read(b) {
					time.Sleep(20 * time.Millisecond)
					_, _ = c.Write(b[:n])
				}
			}()
			return nil
		})
	},
}

// accepting listens there, and passes on each connection.
func accepting(network, address string, each func(net.Conn) error) error {
	l, err := net.Listen(network, address)
	for err == nil {
		var c net.Conn
		if c, err = l.Accept(); err == nil {
			err = each(c)
		}
	}
	return err
}

const (
	listens = "LISTENS"
	// again: it asks twice.
	again = "AGAIN"
)

func startTalker(t *testing.T, act, argument string, env ...string) *os.Process {
	t.Helper()
	return startAct(t, act, argument, nil, env...)
}

func startAct(t *testing.T, act, argument string, attr *syscall.SysProcAttr, env ...string) *os.Process {
	t.Helper()
	return started(t, actCmd(t, act, argument, attr, env...))
}

func actCmd(t *testing.T, act, argument string, attr *syscall.SysProcAttr, env ...string) *exec.Cmd {
	t.Helper()
	self := harness.Must(os.Executable())(t)
	if attr != nil { // without access to the test's folder
		self = "/proc/self/exe"
	}
	cmd := exec.Command(self)
	cmd.Args[0], cmd.Env, cmd.Stderr = act, append(append(os.Environ(), "ARGUMENT="+argument), env...), os.Stderr
	cmd.SysProcAttr = attr
	return cmd
}

func started(t *testing.T, cmd *exec.Cmd) *os.Process {
	t.Helper()
	harness.Start(t, cmd)
	return cmd.Process
}

// listening waits until a connection is accepted, over which it says that.
func listening(t *testing.T, network, address, says string) {
	t.Helper()
	harness.Eventually(t, func() error {
		c, err := net.Dial(network, address)
		if err == nil {
			_, err = c.Write([]byte(says))
			c.Close()
		}
		return err
	})
}

// answered calls an agent without a plugin: then it and those that it asks are connected.
func answered(t *testing.T, address string) {
	t.Helper()
	var c net.Conn
	harness.Eventually(t, func() (err error) { c, err = net.Dial("unix", address); return err })
	defer c.Close()
	harness.Must(c.Read(make([]byte, 1)))(t)
}

func TestWhatAnAgentAsksOverAStandingStream(t *testing.T) {
	for _, network := range []string{"unix", "tcp"} {
		t.Run(network, func(t *testing.T) {
			dir := t.TempDir()
			address := filepath.Join(dir, "database.sock")
			if network == "tcp" {
				address = fmt.Sprint("127.0.0.1:", freePort(t))
			}
			peer := startTalker(t, "answerer", address, listens+"="+network)
			listening(t, network, address, "")
			listen := filepath.Join(dir, "agent.sock")
			agent := startTalker(t, "asker", network+" "+address, listens+"="+listen, again+"=1")
			harness.Listens(t, agent.Pid, listen)
			o := observe(t, func(o *observed) {
				o.agents = []int{agent.Pid}
				harness.Check(t, acting(t, "dial", "unix "+listen).Run())
			})
			// If the agent gets no CPU for a while, the listener is reported first.
			accepts := slices.DeleteFunc(all[*event.Accept](o), func(a *event.Accept) bool { return a.Listens })
			exchanges := all[*event.Exchange](o)
			if len(accepts) != 1 || len(exchanges) != 2 {
				t.Fatalf("accepted: %s, exchanges: %s", printed(o, accepts), printed(o, exchanges))
			}
			var before int64
			for _, e := range o.events {
				x, is := e.Body.(*event.Exchange)
				if !is {
					continue
				}
				if took := e.Time - x.Start; took < int64(20*time.Millisecond) || x.Start < before {
					t.Errorf("%+v took %v", x, time.Duration(took))
				}
				before = e.Time
				if x.Process != accepts[0].Agent.Process || x.Socket != exchanges[0].Socket || x.Thread == 0 || x.Unasked || x.Pending || x.Error != "" {
					t.Errorf("%+v", x)
				}
				if x.Network != network || x.Address != address && !samePath(x.Address, address) {
					t.Errorf("it asked %s %s", x.Network, x.Address)
				}
				if network == "unix" && (x.Peer == nil || int(x.Peer.PID) != peer.Pid || x.Peer.Name != agents.Program(uint32(peer.Pid))) {
					t.Errorf("it asked %+v", x.Peer)
				}
			}
		})
	}
}

func TestWhoIsWaitedForIsFoundAndSampled(t *testing.T) {
	for _, network := range []string{"unix", "tcp"} {
		for _, behind := range []bool{false, true} {
			t.Run(fmt.Sprint(network, ", behind: ", behind), func(t *testing.T) {
				dir := t.TempDir()
				address := filepath.Join(dir, "b.sock")
				if network == "tcp" {
					address = fmt.Sprint("127.0.0.1:", freePort(t))
				}
				b := startTalker(t, "middle", address, listens+"="+network)
				listening(t, network, address, "?")
				c := startTalker(t, "switch", network+" "+address)
				listen := filepath.Join(dir, "a.sock")
				agent := startTalker(t, "asker", network+" "+address, listens+"="+listen)
				answered(t, listen)
				stopped := b
				if behind {
					stopped = c
				}
				o := observe(t, func(o *observed) {
					o.agents = []int{agent.Pid, b.Pid, c.Pid}
					o.all = true
					harness.Check(t, stopped.Signal(unix.SIGSTOP))
					defer func() { _ = stopped.Signal(unix.SIGCONT) }()
					plugin := acting(t, "dial", "unix "+listen)
					harness.Check(t, plugin.Start())
					o.until(t, "it is sampled", func(body event.Body) bool {
						s, is := body.(*event.Agent)
						return is && int(s.PID) == stopped.Pid && s.State == event.AgentStopped
					})
					harness.Check(t, stopped.Signal(unix.SIGCONT))
					harness.Check(t, plugin.Wait())
					o.until(t, "it is let go", func(body event.Body) bool {
						s, is := body.(*event.Agent)
						return is && int(s.PID) == stopped.Pid && s.Over
					})
				})
				pending, over := 0, 0
				for _, x := range all[*event.Exchange](o) {
					if x.Peer == nil || int(x.Peer.PID) != stopped.Pid {
						continue
					}
					if x.Pending {
						pending++
					} else if x.Error == "" {
						over++
					}
					harness.Equal(t, behind, (x.Start == 0), x)
				}
				if pending < 1 || over != 1 {
					for _, x := range all[*event.Exchange](o) {
						t.Logf("%+v %+v", x, x.Peer)
					}
					t.Errorf("pending %d times, over %d times", pending, over)
				}
			})
		}
	}
}
