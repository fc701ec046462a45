//go:build linux

package scenarios

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/tied"
)

type agent struct {
	cmd  *exec.Cmd
	mu   sync.Mutex
	ran  map[int]work // by pid
	said chan struct{}
}

type work struct{ container, line string }

func (s *scene) startAgent(address string, slow, every time.Duration) *agent {
	s.Helper()
	bin := s.TempDir()
	for name, body := range map[string]string{
		"Get-NetAdapter": fmt.Sprintf("sleep %f", slow.Seconds()), "ovs-vsctl": ":", "ovs-ofctl": ":", "conntrack": ":",
		"helperd": "sleep 0.1; exec sleep 45", // present while the gate opens
	} {
		harness.Check(s.T, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755))
	}
	self, err := os.Executable()
	harness.Check(s.T, err)
	a := &agent{cmd: exec.Command(self), ran: map[int]work{}, said: make(chan struct{})}
	a.cmd.Args[0], a.cmd.Stderr = "agentd", os.Stderr
	// The kernel names a process after its file.
	named := filepath.Join(bin, "agentd")
	harness.Check(s.T, os.Symlink(self, named))
	a.cmd.Path = named
	a.cmd.Env = append(os.Environ(), s.rig.Env(), where+"="+address, "CNISCOPE_AGENT_BIN="+bin, "CNISCOPE_AGENT_EVERY="+every.String())
	if every == 0 {
		a.cmd.Env = append(a.cmd.Env, "CNISCOPE_AGENT_EVERY=never")
	}
	out, err := a.cmd.StdoutPipe()
	harness.Check(s.T, err)
	harness.Check(s.T, tied.Start(a.cmd))
	ready := make(chan struct{})
	go func() {
		defer close(a.said)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			f := strings.SplitN(lines.Text(), " ", 4)
			if f[0] == "ready" {
				close(ready)
				continue
			}
			pid, _ := strconv.Atoi(f[0])
			a.mu.Lock()
			a.ran[pid] = work{f[2], f[3]}
			a.mu.Unlock()
		}
	}()
	s.Cleanup(a.stop)
	select {
	case <-ready:
	case <-a.said:
		s.Fatal("the agent does not serve")
	}
	return a
}

func (a *agent) stop() {
	_ = a.cmd.Process.Kill()
	<-a.said
	_ = a.cmd.Wait()
}

func through(address string) rig.Plugin {
	return rig.Use(rig.Conf{"type": "remote", "agent": address})
}

// cniscope's original case (antrea #4859): the time is behind the socket, and the trace names the command.
func TestTheSlowCommandBehindTheSocket(t *testing.T) {
	s := set(t, rig.Options{}, "[slow]\ncall = \"2s\"\n[[slow.rule]]\ncommand = \"Get-Net*\"\nthreshold = \"100ms\"\n")
	for network, address := range map[string]string{
		"unix": "unix " + filepath.Join(t.TempDir(), "antrea.sock"), "tcp": "tcp " + harness.Address(t),
	} {
		t.Run(network, func(t *testing.T) {
			s := s.in(t)
			s.startAgent(address, 2500*time.Millisecond, 0)
			s.network("through-"+network, through(address))
			same := s.replayed()
			call := s.add(rig.PodOptions{}, false)
			same(call)
			says := `^2\.\d+s of 5\.?\d*s: agentd at .+ ran Get-NetAdapter, which ran sleep, while plugin remote waited; ` +
				`Go function configureContainerLink > getNetAdapter > run \(agentd_test\.go:\d+\) started Get-NetAdapter; 1 more run of Get-NetAdapter may be for another pod \(unconfirmed\)$`
			if v := call.Attrs["cniscope.verdict"]; !regexp.MustCompile(says).MatchString(v) {
				t.Errorf("the verdict is %q", v)
			}
			call.accounted(t)
			t.Logf("%.0f ms, mostly %s for %s ms", call.Took(), call.Attrs["cniscope.biggest_part"], call.Attrs["cniscope.biggest_part_ms"])
			if part := call.Attrs["cniscope.biggest_part"]; part != "command agentd > Get-NetAdapter > sleep" {
				t.Errorf("it is said to be lost to %s", part)
			}
			asked := call.Below("agent")
			if len(asked) != 1 || asked[0].Attrs["cniscope.agent"] != "agentd" {
				t.Fatalf("%d calls of the agent", len(asked))
			}
			steps, slow := "", 0
			for _, x := range call.Below("command") {
				if x.ParentSpanID != asked[0].SpanID {
					continue
				}
				steps += x.Name + " " + x.Attrs["cniscope.attribution"] + "\n"
				if x.Name == "Get-NetAdapter" && x.Attrs["cniscope.slow"] == "true" {
					slow++
					if f := x.Attrs["code.function.name"]; !strings.HasSuffix(f, "scenarios.(*agentd).run") || !strings.Contains(x.Attrs["cniscope.callers"], "getNetAdapter") {
						t.Errorf("from %s, of %s", f, x.Attrs["cniscope.callers"])
					}
				}
			}
			if want := "Get-NetAdapter candidate\novs-vsctl certain\nGet-NetAdapter certain\novs-ofctl candidate\n"; steps != want || slow != 2 {
				t.Errorf("%d slow ones of\n%s, want\n%s", slow, steps, want)
			}
			up := false
			for _, x := range append(call.Below("interface"), call.Below("request")...) {
				up = up || x.Attrs["network.interface.name"] == "lo" || strings.Contains(x.Name, "RTM_NEWLINK")
			}
			if !up {
				t.Error("that the agent set lo up is not in the trace")
			}
		})
	}
}
