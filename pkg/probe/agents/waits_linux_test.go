package agents

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

// inodeOf returns the connection's own end.
func inodeOf(t *testing.T, c net.Conn) uint64 {
	t.Helper()
	raw := harness.Must(c.(interface {
		File() (*os.File, error)
	}).File())(t)
	defer raw.Close()
	var stat unix.Stat_t
	harness.Check(t, unix.Fstat(int(raw.Fd()), &stat))
	return stat.Ino
}

// awaiting is an agent's stream to this process, written at that time, and Agents that know both.
func awaiting(t *testing.T, network string, wrote int64) (a *Agents, k *kernelSide, agent event.Actor) {
	t.Helper()
	address := filepath.Join(t.TempDir(), "s")
	if network == "tcp" {
		address = "127.0.0.1:0"
	}
	l := harness.Must(net.Listen(network, address))(t)
	own := harness.Must(net.Dial(network, l.Addr().String()))(t)
	other := harness.Must(l.Accept())(t)
	t.Cleanup(func() { l.Close(); own.Close(); other.Close() })
	agent = serverProcess(t)
	s := kernel.InsideStream{Ino: inodeOf(t, own), Wrote: uint64(wrote), Family: unix.AF_UNIX, OtherIno: inodeOf(t, other)}
	s.Self = kernel.InsideTaskKey(kernel.KeyOf(agent.Process, agent.PID))
	s.Root = s.Self
	if network == "tcp" {
		s.Family, s.OtherIno = unix.AF_INET, 0
		from, to := own.LocalAddr().(*net.TCPAddr), own.RemoteAddr().(*net.TCPAddr)
		s.OwnPort, s.OtherPort = uint16(from.Port), uint16(to.Port)
		for _, address := range []*[4]uint32{&s.OwnAddress, &s.OtherAddress} {
			address[2], address[3] = 0xffff0000, 0x0100007f
		}
		s.Netns = harness.Must(procfs.OwnNamespace("net"))(t)
	}
	k = &kernelSide{followed: map[event.Process]int{agent.Process: 1}, waiting: []kernel.InsideStream{s}}
	a = New(nil, 1, k, new(atomic.Uint64))
	a.walk = walkAmong(os.Getpid())
	a.search = search{clock: func() time.Time { return time.Time{} }, pids: a.walk.pids}
	a.Note(event.Event{Time: 1, Body: &event.Accept{Socket: "s", Agent: agent}})
	return a, k, agent
}

// walkAmong takes no time, and is over at once.
func walkAmong(pids ...int) *walk {
	w := newWalk()
	w.pids = func() ([]int, error) { return slices.Clone(pids), nil }
	w.spent, w.start = func() time.Duration { return 0 }, func(f func()) { f() }
	return w
}

func TestWhomAnAgentWaitsFor(t *testing.T) {
	if os.Getpid() == 1 {
		t.Skip("the first process serves nobody")
	}
	self := startedAs(uint32(os.Getpid()))
	const ms = int64(time.Millisecond)
	for _, network := range []string{"unix", "tcp"} {
		for name, test := range map[string]struct {
			stranger bool
			end      func(a *Agents, agent event.Actor, socket string)
			told     string
		}{
			"until it reads": {false, func(a *Agents, agent event.Actor, socket string) {
				a.Note(event.Event{Time: 5000 * ms, Body: &event.Exchange{Process: agent.Process, Socket: socket}})
			}, ""},
			"until it ends": {false, func(a *Agents, agent event.Actor, _ string) {
				a.Note(event.Event{Time: 5000 * ms, Body: &event.Exit{Process: agent.Process}})
			}, "closed"},
			"until nobody knows": {false, func(a *Agents, _ event.Actor, _ string) {
				a.Tend(6000 * ms)
			}, "unfollowed"},
			"one of a pod's": {true, func(a *Agents, agent event.Actor, socket string) {
				a.Note(event.Event{Time: 5000 * ms, Body: &event.Exchange{Process: agent.Process, Socket: socket}})
			}, ""},
		} {
			t.Run(network+", "+name, func(t *testing.T) {
				a, k, agent := awaiting(t, network, 100*ms)
				k.strangers = map[uint32]bool{uint32(os.Getpid()): test.stranger}
				a.Tend(149 * ms)
				harness.Equal(t, len(k.exchanges), 0, "told before 50 ms")
				a.Tend(200 * ms)
				if len(k.exchanges) == 0 {
					t.Fatalf("nothing is told: %+v", k)
				}
				x := k.exchanges[len(k.exchanges)-1]
				if !x.Pending || x.Process != agent.Process || x.Start != 100*ms || x.Network != network || x.Peer == nil || x.Peer.Process != self {
					t.Errorf("told %+v, %+v", x, x.Peer)
				}
				if other := k.waiting[0].OtherIno; len(k.asked) != 1 || other != 0 && k.asked[0] != other || k.asked[0] == 0 {
					t.Errorf("the kernel watches the sockets %v, the peer has %d", k.asked, other)
				}
				if (k.followed[self] == 2) == test.stranger || !slices.Contains(k.sampled, self) {
					t.Errorf("followed: %v, sampled: %v", k.followed, k.sampled)
				}
				k.waiting = nil
				a.Tend(900 * ms)
				harness.Equal(t, len(a.peers), 1, "peers that are remembered for the next wait")
				test.end(a, agent, x.Socket)
				last := k.exchanges[len(k.exchanges)-1]
				if last.Error != test.told || test.told != "" && last.Pending || len(a.waits) != 0 {
					t.Errorf("at the end: %+v", last)
				}
				a.Tend(8000 * ms)
				if k.followed[self] != 0 || len(a.peers) != 0 {
					t.Error("it is followed though nobody waits for it")
				}
			})
		}
	}
}

// The decoder names streams the same way.
func TestWhatAStreamIsCalled(t *testing.T) {
	harness.Equal(t, socketOf(&kernel.InsideStream{Ino: 9, Dialled: 123456, Dialler: 77}), "77@123456")
	harness.Equal(t, socketOf(&kernel.InsideStream{Ino: 4711}), "0@4711")
}

// Peers are followed up to a depth and a number.
func TestPeersAreBounded(t *testing.T) {
	for _, test := range []struct{ others, depth, want int }{
		{0, 3, 1}, {0, 4, 0}, {15, 2, 16}, {16, 2, 16}, {16, 4, 16},
	} {
		a := New(nil, 1, &kernelSide{followed: map[event.Process]int{}}, new(atomic.Uint64))
		for i := range test.others {
			a.peers[event.Process(fmt.Sprint(i))] = &peer{}
		}
		server := serverProcess(t)
		a.attend(1, &wait{Exchange: event.Exchange{Peer: &server}, key: kernel.KeyOf(server.Process, server.PID)}, test.depth)
		harness.Equal(t, len(a.peers), test.want, test)
	}
}

// A halted process that shares a stream with a peer may be the cause.
func TestWhoStandsStillBehindWhoIsWaitedFor(t *testing.T) {
	var inodes []uint64
	cmd := exec.Command("sleep", "600")
	for range maxStreams + 2 {
		ends := harness.Must(unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))(t)
		defer unix.Close(ends[0])
		far := os.NewFile(uintptr(ends[1]), "far")
		defer far.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, far)
		var stat unix.Stat_t
		harness.Check(t, unix.Fstat(ends[0], &stat))
		inodes = append(inodes, stat.Ino)
	}
	harness.Start(t, cmd)
	search := func(mayServe bool) bool {
		within := search{clock: func() time.Time { return time.Time{} }, pids: func() ([]int, error) { return []int{cmd.Process.Pid}, nil }}
		within.begin(0)
		found, _ := suspectsOf(uint32(os.Getpid()), 0, &within, func(uint32) bool { return mayServe }, new(kernelSide).Key)
		return slices.ContainsFunc(found, func(s suspect) bool {
			return int(s.actor.PID) == cmd.Process.Pid && slices.Equal(s.inodes, inodes[:maxStreams]) && s.network == "unix"
		})
	}
	if search(true) {
		t.Error("it was found before it was stopped")
	}
	harness.Check(t, cmd.Process.Signal(unix.SIGSTOP))
	harness.Until(t, "it is found", func() bool { return search(true) })
	if search(false) {
		t.Error("one that may not serve was found")
	}
	a := New(nil, 1, &kernelSide{followed: map[event.Process]int{}}, new(atomic.Uint64))
	a.search.pids = func() ([]int, error) { return []int{cmd.Process.Pid}, nil }
	a.search.clock = func() time.Time { return time.Time{} }
	a.search.begin(0)
	self, _ := new(kernelSide).Key(uint32(os.Getpid()))
	socket := standing(inodes[0])
	a.suspect(1, &peer{key: self})
	a.suspect(2, &peer{key: self})
	if w := a.waits[socket]; w == nil || w.seen != 1 || len(a.waits) != 1 {
		t.Errorf("its waits are %+v", a.waits)
	}
	delete(a.waits, socket)
	for i := range maxWaits {
		a.waits[fmt.Sprint(i)] = &wait{}
	}
	a.suspect(3, &peer{key: self})
	harness.Equal(t, len(a.waits), 64, "waits, of which there are too many")
}

// An exited peer ends the wait: its end is read, or the request was unseen.
func TestWhoIsWaitedForEnds(t *testing.T) {
	const ms = int64(time.Millisecond)
	a, k, agent := awaiting(t, "unix", 100*ms)
	a.Tend(200 * ms)
	self := startedAs(uint32(os.Getpid()))
	still := event.Actor{Process: self, PID: uint32(os.Getpid()), Name: "still"}
	other := event.Actor{Process: "9@9", PID: 9, Name: "other"}
	a.waits["0@7"] = &wait{Exchange: event.Exchange{Process: agent.Process, Socket: "0@7", Peer: &still, Pending: true}, supposed: true}
	a.waits["0@8"] = &wait{Exchange: event.Exchange{Process: agent.Process, Socket: "0@8", Peer: &other, Pending: true}, seen: 300 * ms}
	told := len(k.exchanges)
	a.Note(event.Event{Time: 300 * ms, Body: &event.Exit{Process: self}})
	if got := k.exchanges[told:]; len(got) != 1 || got[0].Socket != "0@7" || got[0].Pending || got[0].Error != "EOF" {
		t.Errorf("it ended, and told was %+v", got)
	}
	told = len(k.exchanges)
	a.Tend(400 * ms)
	for _, x := range k.exchanges[told:] {
		if x.Peer != nil && x.Peer.Process == self {
			t.Errorf("it is waited for though it ended: %+v", x)
		}
	}
	if a.waits["0@8"] == nil {
		t.Error("the wait for another one ended")
	}
}

func TestWhoIsWaitedForOftenIsSampledOnce(t *testing.T) {
	a, k, _ := awaiting(t, "unix", int64(100*time.Millisecond))
	for range 20 {
		s := k.waiting[0]
		s.Ino += uint64(len(k.waiting))
		k.waiting = append(k.waiting, s)
	}
	a.Tend(int64(200 * time.Millisecond))
	self := startedAs(uint32(os.Getpid()))
	n := 0
	for _, process := range k.sampled {
		if process == self {
			n++
		}
	}
	if len(k.exchanges) != 21 || n != 1 {
		t.Errorf("%d wait, sampled %d times", len(k.exchanges), n)
	}
}

// A supposed wait lasts while the process that waits is itself waited for.
func TestAHaltedProcessIsToldWhileItMatters(t *testing.T) {
	const ms = int64(time.Millisecond)
	a, k, _ := awaiting(t, "unix", 100*ms)
	a.Tend(200 * ms)
	halted := event.Actor{Process: "9@9", PID: 9, Name: "halted"}
	a.waits["0@7"] = &wait{Exchange: event.Exchange{
		Process: startedAs(uint32(os.Getpid())), Socket: "0@7", Peer: &halted, Pending: true,
	}, supposed: true}
	for _, end := range []string{"", "unfollowed"} {
		told := len(k.exchanges)
		a.Tend(a.sampled + 100*ms)
		of7 := slices.DeleteFunc(slices.Clone(k.exchanges[told:]), func(x event.Exchange) bool { return x.Socket != "0@7" })
		if len(of7) != 1 || of7[0].Error != end || of7[0].Pending != (end == "") {
			t.Errorf("told %+v, want one with %q", of7, end)
		}
		k.waiting = nil
	}
}

// The peer of an agent may wait in its turn. It counts for twice the interval of samples.
func TestWhomAPeerWaitsFor(t *testing.T) {
	const ms = int64(time.Millisecond)
	for after, want := range map[int64]bool{50: true, 99: true, 100: false, 140: false} {
		a, k, _ := awaiting(t, "unix", 100*ms)
		of := k.waiting[0]
		of.Ino, of.OtherIno = of.Ino+1, 0
		self, _ := k.Key(uint32(os.Getpid()))
		of.Self = kernel.InsideTaskKey(self)
		of.Root = of.Self
		k.waiting = append(k.waiting, of)
		a.Tend(200 * ms)
		k.waiting = k.waiting[1:]
		told := len(k.exchanges)
		a.Tend((200 + after) * ms)
		got := slices.ContainsFunc(k.exchanges[told:], func(x event.Exchange) bool {
			return x.Process == kernel.ProcessOf(self) && x.Pending
		})
		harness.Equal(t, got, want, "told", after, "ms after it was waited for last")
	}
}

// On a shared stream the last read may have been for another.
func TestWhatWasReadMayNotHaveBeenTheAnswer(t *testing.T) {
	const ms = int64(time.Millisecond)
	for name, test := range map[string]struct {
		last int64 // last write
		told bool
	}{"asked for the call": {50 * ms, true}, "asked before the call": {0, false}} {
		t.Run(name, func(t *testing.T) {
			a, k, _ := awaiting(t, "unix", 0) // called from 1 on
			k.waiting[0].Last, k.waiting[0].Read = uint64(test.last), uint64(100*ms)
			a.Tend(200 * ms)
			if told := len(k.exchanges) > 0; told != test.told {
				t.Fatalf("told %+v", k.exchanges)
			}
			if test.told && (!k.exchanges[0].Unasked || !k.exchanges[0].Pending || k.exchanges[0].Start != 100*ms) {
				t.Errorf("told %+v", k.exchanges[0])
			}
		})
	}
}

// The halted process answers on another stream.
func TestWhoStoodStillSpeaksAgain(t *testing.T) {
	a, _, agent := awaiting(t, "unix", 1)
	still := event.Actor{Process: "9@9", PID: 9, Name: "still"}
	a.waits["0@7"] = &wait{Exchange: event.Exchange{Process: agent.Process, Socket: "0@7", Peer: &still, Pending: true}, supposed: true}
	a.ends["0@7"], a.ends["0@8"] = &end{actor: still}, &end{actor: still}
	a.Note(event.Event{Time: 2, Body: &event.Exchange{Process: "1@1", Socket: "0@8"}})
	harness.Equal(t, len(a.waits), 1, "somebody else read")
	a.Note(event.Event{Time: 3, Body: &event.Exchange{Process: agent.Process, Socket: "0@8"}})
	harness.Equal(t, len(a.waits), 0, a.waits, "waits still")
}
