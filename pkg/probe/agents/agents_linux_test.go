package agents

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

// kernelSide stands for the kernel's table.
type kernelSide struct {
	followed map[event.Process]int
	// may not be followed
	strangers map[uint32]bool
	told      []string
	watched   []kernel.Key
	habits    []string
	waiting   []kernel.InsideStream
	exchanges []event.Exchange
	sampled   []event.Process
	asked     []uint64
}

func (k *kernelSide) Waiting(before int64) []kernel.InsideStream {
	return slices.DeleteFunc(slices.Clone(k.waiting), func(s kernel.InsideStream) bool {
		return int64(max(s.Wrote, s.Read)) > before
	})
}

func (k *kernelSide) Asked(inode uint64) { k.asked = append(k.asked, inode) }

func (k *kernelSide) Asks(uint64) {}

// in the initial PID namespace
func (k *kernelSide) Key(pid uint32) (kernel.Key, bool) {
	s, err := procfs.StatOf(int(pid))
	return kernel.Key{Tgid: pid, Start: uint64(s.Start), Pid: pid}, err == nil
}

func startedAs(pid uint32) event.Process {
	key, _ := new(kernelSide).Key(pid)
	return kernel.ProcessOf(key)
}

func (k *kernelSide) MayServe(pid uint32) bool { return !k.strangers[pid] }

func (k *kernelSide) Tell(b event.Body) {
	switch b := b.(type) {
	case *event.Exchange:
		k.exchanges = append(k.exchanges, *b)
	case *event.Agent:
		k.sampled = append(k.sampled, b.Process)
		if b.Killed != "" {
			k.told = append(k.told, "killed: "+b.Killed)
		} else if b.Over {
			k.told = append(k.told, "over")
		}
		if len(b.Programs) > 0 {
			k.habits = append(k.habits, b.Programs...)
		}
	case *event.Accept:
		k.told = append(k.told, fmt.Sprintf("%s: %s listens: %v", b.Socket, b.Agent.Name, b.Listens))
	}
}

func (k *kernelSide) Follow(key kernel.Key, depth int) (kernel.Key, bool) {
	process := kernel.ProcessOf(key)
	if k.followed[process] == 0 && depth > 0 && k.MayServe(key.Pid) {
		k.followed[process] = depth
	}
	return key, k.followed[process] > 0
}

func (k *kernelSide) Watch(key kernel.Key) { k.watched = append(k.watched, key) }

func (k *kernelSide) Habits(key kernel.Key) []string {
	if !slices.Contains(k.watched, key) {
		return nil
	}
	return []string{"ipset"}
}

func (k *kernelSide) Unfollow(p event.Process) { delete(k.followed, p) }

func (k *kernelSide) Depth(p event.Process) (int, bool) {
	if p == "plugin" {
		return 0, true
	}
	depth, ok := k.followed[p]
	return depth, ok
}

// serverProcess may be a server, unlike the test itself, which may be PID 1 of its namespace.
func serverProcess(t *testing.T) event.Actor {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	harness.Start(t, cmd)
	pid := uint32(cmd.Process.Pid)
	key, ok := new(kernelSide).Key(pid)
	if !ok {
		t.Fatal("it has no key")
	}
	return event.Actor{Process: kernel.ProcessOf(key), PID: pid, Name: Program(pid)}
}

func TestWhoIsFollowedAndHowLong(t *testing.T) {
	server := serverProcess(t)
	const second = int64(time.Second)
	connect := func(listener *event.Actor) event.Event {
		return event.Event{Time: second, Body: &event.Connect{Process: "plugin", Socket: "s", Listener: listener}}
	}
	accept := event.Event{Time: second, Body: &event.Accept{Socket: "s", Agent: server}}
	hangUp := event.Event{Time: 2 * second, Body: &event.Close{Process: "plugin", Socket: "s"}}
	asListener := &event.Actor{PID: server.PID, Name: server.Name}
	for name, test := range map[string]struct {
		depth    int
		accepted int // depth at which the kernel side follows it
		events   []event.Event
		tend     []int64 // ms
		followed bool
		told     string
	}{
		"who accepted, while it is called":         {1, 1, []event.Event{connect(nil), accept}, []int64{1500, 9000}, true, ""},
		"over loopback it is told to accept first": {1, 1, []event.Event{accept, connect(nil)}, []int64{9000}, true, ""},
		"a second after the call no more":          {1, 1, []event.Event{connect(nil), accept, hangUp}, []int64{2900, 3000}, false, "over"},
		"a caller that ends hangs up":              {1, 1, []event.Event{accept, connect(nil), {Time: 2 * second, Body: &event.Exit{Process: "plugin"}}}, []int64{3000}, false, "over"},
		"a connection that was refused is none":    {1, 1, []event.Event{accept, {Time: 2 * second, Body: &event.Connect{Process: "plugin", Socket: "s", Error: "ECONNREFUSED"}}}, []int64{3000}, false, "over"},
		"a call whose beginning was lost ends":     {1, 1, []event.Event{accept}, []int64{2500, 3600}, false, "over"},
		"who listens, if nobody accepts":           {1, 0, []event.Event{connect(asListener)}, []int64{1049, 1050}, true, "s: " + server.Name + " listens: true"},
		"who listens, for 50 ms not":               {1, 0, []event.Event{connect(asListener)}, []int64{1049}, false, ""},
		"not who listens, if it is systemd":        {1, 0, []event.Event{connect(&event.Actor{PID: 1, Name: "systemd"})}, []int64{1500}, false, ""},
		"not who listens, if another one accepts":  {1, 1, []event.Event{connect(&event.Actor{PID: 1, Name: "systemd"}), accept}, []int64{1500}, true, ""},
		"nobody, at depth 0":                       {0, 0, []event.Event{connect(asListener), accept}, []int64{1500}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			k := &kernelSide{followed: map[event.Process]int{}}
			if test.accepted > 0 {
				k.followed[server.Process] = test.accepted
			}
			a := New(nil, test.depth, k, new(atomic.Uint64))
			for _, e := range test.events {
				a.Note(e)
			}
			for _, at := range test.tend {
				a.Tend(at * int64(time.Millisecond))
			}
			if _, followed := k.followed[server.Process]; followed != test.followed {
				t.Errorf("followed: %v", followed)
			}
			harness.Equal(t, strings.Join(k.told, ", "), test.told, "told")
			if !test.followed && test.accepted > 0 && len(a.open) != 0 {
				t.Errorf("%d calls are left", len(a.open))
			}
		})
	}
}

// An agent is sampled every 50 ms, once a call is that old, and once for all of its calls.
func TestHowOftenAnAgentIsSampled(t *testing.T) {
	server := serverProcess(t)
	k := &kernelSide{followed: map[event.Process]int{server.Process: 1}}
	a := New(nil, 1, k, new(atomic.Uint64))
	call := func(ms int64, socket string) {
		a.Note(event.Event{Time: ms * int64(time.Millisecond), Body: &event.Connect{Process: "plugin", Socket: socket}})
		a.Note(event.Event{Time: ms * int64(time.Millisecond), Body: &event.Accept{Socket: socket, Agent: server}})
	}
	call(1000, "s")
	for _, step := range []struct {
		ms   int64
		more int
	}{{1049, 0}, {1099, 1}, {1140, 0}, {1149, 1}, {1150, 0}, {1198, 0}, {1199, 1}, {1260, 1}} {
		if step.ms == 1150 {
			call(1150, "s2")
		}
		before := len(k.sampled)
		a.Tend(step.ms * int64(time.Millisecond))
		harness.Equal(t, len(k.sampled)-before, step.more, "samples at", step.ms)
	}
}

func TestAServerTooDeepToBeFollowedIsSampled(t *testing.T) {
	server := serverProcess(t)
	for trusted, want := range map[bool]int{true: 1, false: 0} {
		k := &kernelSide{followed: map[event.Process]int{"agent": 1}, strangers: map[uint32]bool{server.PID: !trusted}}
		a := New(nil, 1, k, new(atomic.Uint64))
		a.Note(event.Event{Time: 1, Body: &event.Connect{Process: "agent", Socket: "s"}})
		a.Note(event.Event{Time: 2, Body: &event.Accept{Socket: "s", Agent: server}})
		a.Tend(int64(time.Second))
		harness.Equal(t, len(k.sampled), want, "samples, trusted", trusted)
		harness.Equal(t, k.followed[server.Process], 0, "depth")
	}
}

// The server of a server is followed by its listener only at depth 2.
func TestHowDeepAListenerIsFollowed(t *testing.T) {
	server := serverProcess(t)
	for depth, want := range map[int]bool{1: false, 2: true} {
		k := &kernelSide{followed: map[event.Process]int{"agent": 1}}
		a := New(nil, depth, k, new(atomic.Uint64))
		a.Note(event.Event{Time: 1, Body: &event.Connect{Process: "agent", Socket: "s", Listener: &event.Actor{PID: server.PID}}})
		a.Tend(int64(time.Second))
		harness.Equal(t, k.followed[server.Process] == 2, want, "depth", depth, k.followed)
		exact := kernel.KeyOf(server.Process, server.PID)
		exact.Start++
		a.Note(event.Event{Time: 1, Body: &event.Connect{
			Process: "agent", Socket: "s2", Listener: &event.Actor{PID: server.PID, Process: kernel.ProcessOf(exact)},
		}})
		a.Tend(int64(2 * time.Second))
		harness.Equal(t, k.followed[kernel.ProcessOf(exact)] == 2, want, "depth", depth, k.followed)
	}
}

func TestAServerIsRememberedUntilItEnds(t *testing.T) {
	server := serverProcess(t)
	k := &kernelSide{followed: map[event.Process]int{server.Process: 1}}
	a := New(nil, 1, k, new(atomic.Uint64))
	a.Note(event.Event{Time: 1, Body: &event.Connect{Process: "plugin", Socket: "s"}})
	a.Note(event.Event{Time: 1, Body: &event.Accept{Socket: "s", Agent: server}})
	harness.Equal(t, a.Client("s")+a.Client("another"), "plugin", "its client")
	a.Note(event.Event{Time: 2, Body: &event.Close{Process: "plugin", Socket: "s"}})
	a.Tend(int64(time.Minute))
	if len(k.followed) != 0 || len(a.known) != 1 {
		t.Fatalf("between calls: followed %v, known %d", k.followed, len(a.known))
	}
	a.Expect(int64(time.Hour))
	harness.Equal(t, len(k.followed), 1, "it is not followed when the next call begins")
	a.Note(event.Event{Time: 3, Body: &event.Exit{Process: server.Process}})
	harness.Equal(t, len(a.known), 0, "it ended, and is remembered")
	// its end was not seen
	gone := kernel.KeyOf(server.Process, server.PID)
	gone.Start -= uint64(time.Hour)
	ended := a.learn(gone, "gone")
	ended.watch = &watch{}
	a.Expect(int64(2 * time.Hour))
	harness.Equal(t, len(a.known), 0, "what ended unseen is followed")
	if ended.watch != nil {
		t.Error("what ended unseen is watched")
	}
}

func TestAnAgentOfALostConnectionIsFollowedForAWhile(t *testing.T) {
	server := serverProcess(t)
	key := kernel.KeyOf(server.Process, server.PID)
	k := &kernelSide{followed: map[event.Process]int{}}
	a := New(nil, 1, k, new(atomic.Uint64))
	a.Adopt(0, key)
	harness.Equal(t, len(a.known), 0, "known though the kernel side does not follow it")
	k.followed[server.Process] = 1
	const second = int64(time.Second)
	a.Adopt(5*second, key)
	a.Adopt(8*second, key)
	harness.EqualSlices(t, k.sampled, []event.Process{server.Process})
	a.Tend(6*second - 1)
	harness.Equal(t, a.Following(), true, "followed before the second is over")
	a.Tend(6 * second)
	harness.Equal(t, a.Following() || len(k.followed) > 0, false, "followed after it")
	k.followed[server.Process] = 1
	a.Adopt(9*second, key)
	harness.Equal(t, a.Following(), true, "followed again")
	for n := range uint32(maxAgents - 1) {
		a.learn(kernel.Key{Tgid: 1<<22 + n, Pid: 1<<22 + n, Start: 1}, "other").followed = true
	}
	harness.Equal(t, len(a.known), 64, "agents known")
	beyond := serverProcess(t)
	k.followed[beyond.Process] = 1
	a.Adopt(9*second, kernel.KeyOf(beyond.Process, beyond.PID))
	harness.Equal(t, k.followed[beyond.Process], 0, "one beyond the limit is followed")
	k.followed[beyond.Process] = 1
	a.Note(event.Event{Time: 9 * second, Body: &event.Accept{Socket: "s", Agent: beyond}})
	harness.Equal(t, k.followed[beyond.Process], 0, "one beyond the limit that answers is followed")
}

func TestAgentsAreFoundByName(t *testing.T) {
	harness.Equal(t, matches([]string{"kube-controller-manager"}, "kube-controller"), true, "a name that the kernel cuts")
	server := serverProcess(t)
	for pattern, want := range map[string]bool{
		server.Name: true, server.Name[:3] + "*": true, "?" + server.Name[1:]: true, server.Name + strings.Repeat("x", 20): len(server.Name) == 15,
		"antrea-agent": false, "[": false, "": false,
	} {
		a := New([]string{pattern}, 1, &kernelSide{followed: map[event.Process]int{}}, new(atomic.Uint64))
		a.Expect(int64(time.Hour))
		if got := slices.ContainsFunc(agentsOf(a), func(k *agent) bool { return k.key.Pid == server.PID && k.followed }); got != want {
			t.Errorf("%q: %v", pattern, got)
		}
	}
}

// A pod may name its processes like agents.
func TestWhoOnlyHasTheNameOfAnAgentTakesNobodysPlace(t *testing.T) {
	server, program7 := serverProcess(t), filepath.Join(t.TempDir(), "stranger7")
	sleep := harness.Must(exec.LookPath("sleep"))(t)
	harness.Check(t, os.Symlink(sleep, program7))
	for _, strangers := range []bool{true, false} { // otherwise they might be agents
		k := &kernelSide{followed: map[event.Process]int{}, strangers: map[uint32]bool{}}
		for range maxAgents + 1 {
			cmd := exec.Command(program7, "60")
			harness.Start(t, cmd)
			k.strangers[uint32(cmd.Process.Pid)] = strangers
			for Program(uint32(cmd.Process.Pid)) != "stranger7" && t.Context().Err() == nil { // before the exec
				runtime.Gosched()
			}
		}
		a := New([]string{"stranger7"}, 1, k, new(atomic.Uint64))
		a.Find(int64(time.Hour))
		harness.Equal(t, strangers, (len(a.known) == 0), "strangers", len(a.known), "are known")
		k.followed[server.Process] = 1
		a.Note(event.Event{Time: 1, Body: &event.Connect{Process: "plugin", Socket: "s"}})
		a.Note(event.Event{Time: 1, Body: &event.Accept{Socket: "s", Agent: server}})
		if known := a.known[server.Process]; known == nil || known.connections != 1 || k.followed[server.Process] == 0 {
			t.Errorf("strangers: %v; who answers has no place: %+v", strangers, known)
		}
	}
}

func agentsOf(a *Agents) (all []*agent) {
	for _, k := range a.known {
		all = append(all, k)
	}
	return all
}
