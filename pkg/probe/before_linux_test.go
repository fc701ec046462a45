package probe

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

// opened is a plugin that connected before the gate was opened.
type opened struct {
	*server
	cmd *exec.Cmd
}

func openBefore(t *testing.T, network string) *opened {
	t.Helper()
	address := filepath.Join(t.TempDir(), "agent.sock")
	if network == "tcp" {
		address = "127.0.0.1:0"
	}
	s := serve(t, network, address, false)
	return &opened{s, unopening(t, "dial", network+" "+s.address)}
}

// unopening is a plugin that does not open the gate.
func unopening(t *testing.T, act, argument string) *exec.Cmd {
	t.Helper()
	cmd := acting(t, act, argument)
	cmd.Env = append(slices.DeleteFunc(cmd.Env, func(v string) bool { return v == "CNI_COMMAND=ADD" }), "CNI_COMMAND=STATUS")
	return cmd
}

// hasDialled reports whether a connection waits to be accepted.
func (b *opened) hasDialled(t *testing.T) bool {
	if b.network == "unix" {
		all, err := os.ReadFile("/proc/net/unix")
		return err == nil && strings.Count(string(all), b.address+"\n") == 2
	}
	all := harness.Must(os.ReadFile("/proc/net/tcp"))(t)
	const established = "01"
	local := fmt.Sprintf(":%04X", netip.MustParseAddrPort(b.address).Port())
	return slices.ContainsFunc(strings.Split(string(all), "\n"), func(line string) bool {
		f := strings.Fields(line)
		return len(f) > 3 && strings.HasSuffix(f[1], local) && f[3] == established
	})
}

func (b *opened) ends(t *testing.T, o *observed) (connect *event.Connect) {
	t.Helper()
	b.does(t, "answer")
	harness.Check(t, b.cmd.Wait())
	o.until(t, "that it hangs up", func(e event.Body) bool { _, is := e.(*event.Close); return is })
	connects := all[*event.Connect](o)
	if len(connects) != 1 {
		t.Fatalf("connects: %s", printed(o, connects))
	}
	connect = connects[0]
	if closes := all[*event.Close](o); closes[0].Socket != connect.Socket || closes[0].Process != connect.Process {
		t.Errorf("%+v, %+v", connect, closes[0])
	}
	if connect.Network != b.network || connect.Address != b.address && !samePath(connect.Address, b.address) {
		t.Errorf("%+v, want %s", connect, b.address)
	}
	return connect
}

func openGate(t *testing.T, o *observed) {
	t.Helper()
	harness.Check(t, acting(t, "sleep", "").Run())
	o.until(t, "the connection", func(e event.Body) bool { _, is := e.(*event.Connect); return is })
}

func TestWhatWasConnectedBeforeTheGateOpensIsFound(t *testing.T) {
	b := openBefore(t, "unix")
	given := harness.Must(net.Dial("unix", b.address))(t)
	defer given.Close()
	asFile := harness.Must(given.(*net.UnixConn).File())(t)
	defer asFile.Close()
	b.cmd.ExtraFiles = []*os.File{asFile}
	b.does(t, "accept")
	observeProbe(t, Options{Detail: DetailAuto}, func(_ *Probe, o *observed) {
		b.isServed(t, o)
	})
}

func TestATCPConnectionFromBeforeTheGateOpensIsFound(t *testing.T) {
	b := openBefore(t, "tcp")
	observeProbe(t, Options{Detail: DetailAuto}, func(_ *Probe, o *observed) {
		b.isServed(t, o)
	})
}

// isServed starts the plugin, accepts its connection, and checks that the opened gate reports the server.
func (b *opened) isServed(t *testing.T, o *observed) {
	t.Helper()
	o.agents = []int{b.pid}
	harness.Check(t, b.cmd.Start())
	b.does(t, "accept")
	openGate(t, o)
	connect := b.ends(t, o)
	accepts := all[*event.Accept](o)
	if len(accepts) != 1 || accepts[0].Listens || int(accepts[0].Agent.PID) != b.pid || accepts[0].Socket != connect.Socket {
		t.Errorf("accepts: %s", printed(o, accepts))
	}
}

func TestWhoAcceptsWhatWasConnectedBeforeIsSeen(t *testing.T) {
	for _, network := range []string{"unix", "tcp"} {
		b := openBefore(t, network)
		observeProbe(t, Options{Detail: DetailAuto}, func(_ *Probe, o *observed) {
			o.agents = []int{b.pid}
			harness.Check(t, b.cmd.Start())
			harness.Until(t, "it connects", func() bool { return b.hasDialled(t) })
			openGate(t, o)
			b.does(t, "accept")
			connect := b.ends(t, o)
			if !slices.ContainsFunc(all[*event.Accept](o), func(a *event.Accept) bool { return !a.Listens && a.Socket == connect.Socket }) {
				t.Errorf("%s, accepts: %s", network, printed(o, all[*event.Accept](o)))
			}
		})
	}
}

func TestWhatAnAgentBeganBeforeTheGateOpensIsFound(t *testing.T) {
	script := filepath.Join(t.TempDir(), "Get-NetAdapter")
	harness.Check(t, os.WriteFile(script, []byte("#!/bin/sh\nsleep 60; true\n"), 0o755))
	for _, network := range []string{"unix", "tcp"} {
		b := openBefore(t, network)
		observeProbe(t, Options{Detail: DetailAuto}, func(_ *Probe, o *observed) {
			o.agents = []int{b.pid}
			harness.Check(t, b.cmd.Start())
			b.does(t, "accept")
			work := harness.Must(strconv.Atoi(b.does(t, "run "+script)))(t)
			defer func() { _ = unix.Kill(work, unix.SIGKILL) }()
			openGate(t, o)
			o.until(t, "the agent's command", func(e event.Body) bool {
				x, is := e.(*event.Exec)
				return is && int(x.PID) == work && x.Name == "Get-NetAdapter" && !x.InFlight && !x.Root
			})
			b.ends(t, o)
		})
	}
}

func TestAWaitFromBeforeTheGateOpensIsFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	holder := harness.Must(os.Create(file))(t)
	defer holder.Close()
	harness.Check(t, unix.Flock(int(holder.Fd()), unix.LOCK_EX))
	cmd := unopening(t, "lock", file)
	observeProbe(t, Options{Detail: DetailAuto, Way: "system-calls"}, func(_ *Probe, o *observed) {
		harness.Check(t, cmd.Start())
		harness.Until(t, "it waits", func() bool { return waitsForALock(cmd.Process.Pid) })
		harness.Check(t, acting(t, "sleep", "").Run())
		o.until(t, "the open gate", func(e event.Body) bool { d, is := e.(*event.Detail); return is && d.On })
		time.Sleep(5 * time.Millisecond) // long enough to be reported
		harness.Check(t, unix.Flock(int(holder.Fd()), unix.LOCK_UN))
		harness.Check(t, cmd.Wait())
		o.until(t, "its wait", func(e event.Body) bool {
			w, is := e.(*event.Wait)
			return is && w.Kind == event.WaitLock && !w.Released && samePath(w.Path, file)
		})
	})
}
