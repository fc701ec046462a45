package agents

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/functions"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

func TestWhatAnAgentDoesIsToldByAllOfItsThreads(t *testing.T) {
	idle := procfs.Thread{State: "S", Channel: "futex_wait_queue_me"}
	for name, test := range map[string]struct {
		threads []procfs.Thread
		state   event.AgentState
		channel string
	}{
		"gone":                              {nil, "", ""},
		"only its first thread has ended":   {[]procfs.Thread{{State: "Z"}, idle}, event.AgentIdle, ""},
		"idle":                              {[]procfs.Thread{idle, {State: "S", Channel: "do_epoll_wait"}, {State: "S", Channel: "ep_poll"}}, event.AgentIdle, ""},
		"idle, by the entry of a call":      {[]procfs.Thread{{State: "S", Channel: "__x64_sys_pause"}, {State: "S", Channel: "__do_sys_rt_sigsuspend"}}, event.AgentIdle, ""},
		"where it waits is not told":        {[]procfs.Thread{{State: "S"}}, event.AgentIdle, ""},
		"one waits":                         {[]procfs.Thread{idle, {State: "S", Channel: "rtnl_lock_killable"}, idle}, event.AgentWaiting, "rtnl_lock_killable"},
		"one runs":                          {[]procfs.Thread{{State: "S", Channel: "rtnl_lock_killable"}, {State: "R"}}, event.AgentRunning, ""},
		"one is not to be interrupted":      {[]procfs.Thread{{State: "R"}, {State: "D", Channel: "jbd2_log_wait_commit"}}, event.AgentUninterruptible, "jbd2_log_wait_commit"},
		"frozen":                            {[]procfs.Thread{{State: "S", Channel: "get_signal"}, {State: "S", Channel: "do_freezer_trap"}}, event.AgentFrozen, ""},
		"frozen, by the older freezer":      {[]procfs.Thread{{State: "D", Channel: "__refrigerator"}}, event.AgentFrozen, ""},
		"frozen where it sleeps":            {[]procfs.Thread{{State: "D", Channel: "hrtimer_nanosleep"}}, event.AgentFrozen, ""},
		"stopped":                           {[]procfs.Thread{{State: "T"}, {State: "T"}}, event.AgentStopped, ""},
		"one of its threads has a debugger": {[]procfs.Thread{idle, {State: "t"}, {State: "R"}}, event.AgentStopped, ""},
	} {
		if state, channel := stateOf(test.threads); state != test.state || channel != test.channel {
			t.Errorf("%s: %s in %q", name, state, channel)
		}
	}
}

// With the functions' names in this kernel.
func TestTheStatesOfARealProcess(t *testing.T) {
	harness.Root(t)
	var server event.Actor
	var key kernel.Key
	begin := func() {
		server = serverProcess(t)
		key = kernel.KeyOf(server.Process, server.PID)
	}
	is := func(want event.AgentState) {
		t.Helper()
		var got *event.Agent
		harness.Until(t, "it is "+string(want), func() bool { got = sample(key, "sleep"); return got.State == want })
		harness.Equal(t, got.Channel, "")
	}
	for _, freezer := range []struct{ in, file, freeze, thaw string }{
		{"/sys/fs/cgroup", "cgroup.freeze", "1", "0"},
		{"/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"},
		{"/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED"},
	} {
		if _, err := os.Stat(filepath.Join(freezer.in, "cgroup.procs")); err != nil {
			continue
		}
		begin()
		is(event.AgentIdle)
		group := harness.Must(os.MkdirTemp(freezer.in, "cniscope-test-"))(t)
		pid := []byte(strconv.Itoa(int(server.PID)))
		put := func(file, what string) { harness.Check(t, os.WriteFile(filepath.Join(group, file), []byte(what), 0)) }
		put("cgroup.procs", string(pid))
		if _, err := os.Stat(filepath.Join(group, freezer.file)); err == nil {
			put(freezer.file, freezer.freeze)
			is(event.AgentFrozen)
			put(freezer.file, freezer.thaw)
		}
		harness.Check(t, os.WriteFile(filepath.Join(freezer.in, "cgroup.procs"), pid, 0))
		harness.Eventually(t, func() error { return os.Remove(group) })
	}
	begin()
	is(event.AgentIdle)
	harness.Check(t, unix.Kill(int(server.PID), unix.SIGSTOP))
	is(event.AgentStopped)
	state, by := HaltOf(int(server.PID))
	harness.Equal(t, fmt.Sprint(state, " by ", by), "stopped by ", "halted")
	harness.Check(t, unix.Kill(int(server.PID), unix.SIGCONT))
	is(event.AgentIdle)
	busy := exec.Command("sh", "-c", "while :; do :; done")
	harness.Start(t, busy)
	stranger := key
	stranger.Pid, stranger.Start = uint32(busy.Process.Pid), key.Start-1e9
	key, _ = new(kernelSide).Key(stranger.Pid)
	is(event.AgentRunning)
	if s := sample(stranger, "agentd"); s.State != "" || s.CPU != 0 {
		t.Errorf("who has the number of one that is gone is taken for it: %+v", s)
	}
}

// BenchmarkSample has as many threads as a Go server.
func BenchmarkSample(b *testing.B) {
	key, _ := new(kernelSide).Key(uint32(os.Getpid()))
	threads, _ := procfs.Threads(os.Getpid(), maxThreads)
	b.ReportMetric(float64(len(threads)), "threads")
	for b.Loop() {
		sample(key, "self")
	}
}

// An OOM kill uses the same signal as others.
func TestAnAgentThatIsKilledForWantOfMemory(t *testing.T) {
	harness.Root(t)
	for _, limit := range []struct{ in, file string }{
		{"/sys/fs/cgroup", "memory.max"}, {"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
	} {
		if _, err := os.Stat(filepath.Join(limit.in, "cgroup.procs")); err != nil {
			continue
		}
		group := harness.Must(os.MkdirTemp(limit.in, "cniscope-test-"))(t)
		t.Cleanup(func() { harness.Eventually(t, func() error { return os.Remove(group) }) })
		if os.WriteFile(filepath.Join(group, limit.file), []byte("16777216"), 0) != nil {
			continue // no memory group
		}
		for _, hungry := range []bool{true, false} {
			// tail keeps what it reads until a line ends.
			cmd := exec.Command("sh", "-c", "echo $$ > "+group+"/cgroup.procs; read go; exec tail /dev/zero")
			in, err := cmd.StdinPipe()
			harness.Check(t, err)
			harness.Check(t, cmd.Start())
			harness.Until(t, "it is in the group", func() bool {
				procs, _ := os.ReadFile(filepath.Join(group, "cgroup.procs"))
				return len(procs) > 0
			})
			pid := uint32(cmd.Process.Pid)
			process := startedAs(pid)
			k := &kernelSide{followed: map[event.Process]int{process: 1}}
			server := event.Actor{Process: process, PID: pid, Name: "sh"}
			a, onlyPeer := New(nil, 1, k, new(atomic.Uint64)), New(nil, 1, k, new(atomic.Uint64))
			a.Note(event.Event{Time: 1, Body: &event.Accept{Socket: "s", Agent: server}})
			for _, waits := range []*Agents{a, onlyPeer} {
				waits.attend(1, &wait{Exchange: event.Exchange{Peer: &server}, key: kernel.KeyOf(process, pid)}, 1)
			}
			if hungry {
				_, err = in.Write([]byte("\n"))
				harness.Check(t, err)
			} else {
				harness.Check(t, cmd.Process.Kill())
			}
			_ = cmd.Wait()
			for _, told := range []*Agents{a, onlyPeer} {
				k.told = nil
				told.Note(event.Event{Time: 2, Body: &event.Exit{Process: process, Signal: "SIGKILL"}})
				harness.EqualSlices(t, k.told, map[bool][]string{true: {"killed: OOM"}}[hungry])
			}
		}
		return
	}
	t.Skip("there is no cgroup to limit memory")
}

// Reading a program's tables costs more than looks.
func TestAnAgentWithoutNamesIsOpenedOnceForAWait(t *testing.T) {
	server := serverProcess(t)
	a := New(nil, 1, &kernelSide{followed: map[event.Process]int{server.Process: 1}}, new(atomic.Uint64))
	a.Note(event.Event{Body: &event.Connect{Process: "plugin", Socket: "s"}})
	a.Note(event.Event{Body: &event.Accept{Socket: "s", Agent: server}})
	known := a.known[server.Process]
	a.Functions = functions.NewStacks()
	a.Functions.Spent(0)
	a.Tend(int64(900 * time.Millisecond))
	harness.Equal(t, known.watch == nil, true, "without time to look")
	a.Functions = functions.NewStacks()
	a.Tend(int64(time.Second))
	opened := known.watch
	a.Tend(int64(2 * time.Second))
	if opened == nil || opened.Watch != nil || known.watch != opened {
		t.Errorf("first %+v, then %+v", opened, known.watch)
	}
	a.open["s"].look = 1 // of another agent, which it called before
	a.Note(event.Event{Time: int64(2 * time.Second), Body: &event.Close{Process: "plugin", Socket: "s"}})
	a.Tend(int64(3 * time.Second))
	harness.Equal(t, known.watch == nil, true, "after the wait")
}
