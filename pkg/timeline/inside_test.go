package timeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

// With system calls.
func looked(t *testing.T) *story {
	s := tell(t)
	s.line.options.MinSpan = time.Millisecond
	return s
}

// bridging is one with a plugin in it.
func bridging(t *testing.T) *story { return looked(t).plugin(0, "b", "ADD", "bridge") }

func (s *story) wait(start, end int64, process string, kind event.WaitKind, name string, change ...func(*event.Wait)) *story {
	w := &event.Wait{Process: event.Process(process), Start: start * ms, Kind: kind, Name: name}
	if kind == event.WaitLock {
		w.Name, w.Path = "flock", name
	}
	for _, f := range change {
		f(w)
	}
	return s.at(end, w)
}

func (s *story) unlock(at int64, process, path string) *story {
	return s.at(at, &event.Wait{
		Process: event.Process(process), Start: at * ms, Kind: event.WaitLock, Path: path,
		Released: true,
	})
}

func heldBy(process string, pid uint32, name string) func(*event.Wait) {
	return func(w *event.Wait) {
		w.Holder = &event.Actor{Process: event.Process(process), PID: pid, Name: name}
	}
}

func stopped(w *event.Wait) { w.Holder.State = event.AgentStopped }

// The wait's end was noticed late.
func until(end int64) func(*event.Wait) { return func(w *event.Wait) { w.End = end * ms } }

func inVain(errno string) func(*event.Wait) { return func(w *event.Wait) { w.Error = errno } }

func pid(n uint32) func(*event.Exec) { return func(e *event.Exec) { e.PID = n } }

var meanings = map[string]event.Request{
	"RTM_NEWLINK":      {Object: event.ObjectLink, Verb: event.VerbAdd},
	"RTM_GETLINK":      {Object: event.ObjectLink, Verb: event.VerbQuery},
	"RTM_NEWADDR":      {Object: event.ObjectAddress, Verb: event.VerbAdd},
	"RTM_NEWROUTE":     {Object: event.ObjectRoute, Verb: event.VerbAdd},
	"RTM_DELROUTE":     {Object: event.ObjectRoute, Verb: event.VerbDelete},
	"RTM_GETRULE":      {Object: event.ObjectRule, Verb: event.VerbQuery},
	"NFT_MSG_NEWCHAIN": {Object: event.ObjectChain, Verb: event.VerbAdd},
	"NFT_MSG_NEWRULE":  {Object: event.ObjectRule, Verb: event.VerbAdd},
}

// ask reports a request that ended at end.
func (s *story) ask(start, end int64, process, name string, change ...func(*event.Request)) *story {
	r := meanings[name]
	r.Process, r.Start, r.Protocol, r.Name, r.NetNS.Key = event.Process(process), start*ms, "rtnetlink", name, "host"
	for _, f := range change {
		f(&r)
	}
	return s.at(end, &r)
}

func sequence(n uint32) func(*event.Request) { return func(r *event.Request) { r.Sequence = n } }
func exclusive(r *event.Request)             { r.Exclusive = true }
func times(n int) func(*event.Request)       { return func(r *event.Request) { r.Count = n } }

func about(index uint32, name string) func(*event.Request) {
	return func(r *event.Request) { r.Interface.Index, r.Interface.Name = index, name }
}

func address(a string) func(*event.Request) { return func(r *event.Request) { r.Address = a } }

func (s *story) answer(at int64, process string, n uint32, errno, message string) *story {
	return s.at(at, &event.Answer{Process: event.Process(process), Sequence: n, Error: errno, Message: message})
}

func (s *story) inside(name string) *model.Image {
	var found *model.Image
	for _, op := range s.closed {
		everyImage(op, func(im *model.Image) {
			if im.Name == name {
				found = im
			}
		})
	}
	if found == nil {
		s.t.Fatalf("nothing is known of the inside of %s", name)
	}
	return found
}

func lines[W model.What](im *model.Image, say func(W, model.Interval) string) string {
	var out []string
	for f, what := range model.Each[W](im.Facts) {
		out = append(out, say(what, f.When))
	}
	return strings.Join(out, "\n")
}

func saidOfWait(w *model.Wait, when model.Interval) string {
	s := fmt.Sprintf("%s %s%s %d-%d", w.Kind, w.Name, w.Path, when.Start/ms, when.End/ms)
	if w.Tries > 1 {
		s += fmt.Sprintf(" in %d tries", w.Tries)
	}
	if w.Error != "" {
		s += " failed: " + w.Error
	}
	if h := w.Holder; h != nil {
		s += fmt.Sprintf(", held by %s (%s) for %d", h.Name, strings.TrimSpace(fmt.Sprint(h.PID, " ", h.State)), w.HolderAge/ms)
		if !w.AgeExact {
			s += " at least"
		}
	}
	return s
}

func TestWaits(t *testing.T) {
	const path = "/run/lock"
	stories{
		"a lock with its holder, whose age is known because it was seen to take it": {func(s *story) {
			s.plugin(0, "a", "ADD", "other", container("c2"), pid(11)).wait(10, 10, "a", event.WaitLock, path).
				plugin(20, "b", "ADD", "bridge").unlock(100, "a", path).
				wait(30, 100, "b", event.WaitLock, path, heldBy("a", 11, "other"), stopped)
		}, "lock flock/run/lock 30-100, held by other (11 stopped) for 90"},
		"of a holder that nobody saw take it, the age is at least the wait": {func(s *story) {
			s.plugin(20, "b", "ADD", "bridge").wait(30, 100, "b", event.WaitLock, path, heldBy("", 812, "kube-proxy"))
		}, "lock flock/run/lock 30-100, held by kube-proxy (812) for 70 at least"},
		"and less if somebody else had it in between": {func(s *story) {
			s.plugin(20, "b", "ADD", "bridge").plugin(20, "a", "ADD", "other", container("c2")).
				wait(25, 60, "a", event.WaitLock, path, heldBy("", 812, "kube-proxy")).exit(90, "a").
				wait(30, 90, "b", event.WaitLock, path, heldBy("", 812, "kube-proxy"))
		}, "lock flock/run/lock 30-90, held by kube-proxy (812) for 30 at least"},
		"a process that ends gives back what it has": {func(s *story) {
			s.plugin(0, "a", "ADD", "other", container("c2"), pid(11)).wait(10, 10, "a", event.WaitLock, path).exit(20, "a").
				plugin(20, "b", "ADD", "bridge").wait(30, 40, "b", event.WaitLock, path)
		}, "lock flock/run/lock 30-40"},
		"a holder that the kernel does not name is the one that was seen": {func(s *story) {
			s.plugin(0, "a", "ADD", "other", container("c2"), pid(11)).wait(10, 10, "a", event.WaitLock, path).
				plugin(20, "b", "ADD", "bridge").exit(50, "a").wait(30, 50, "b", event.WaitLock, path)
		}, "lock flock/run/lock 30-50, held by other (11) for 40"},
		"a holder that gave it back before another took it had it until then": {func(s *story) {
			s.plugin(0, "a", "ADD", "other", container("c2"), pid(11)).wait(10, 10, "a", event.WaitLock, path).
				plugin(20, "b", "ADD", "bridge").plugin(20, "c", "ADD", "third", container("c3")).unlock(60, "a", path).
				wait(25, 60, "c", event.WaitLock, path).exit(100, "c").wait(30, 100, "b", event.WaitLock, path)
		}, "lock flock/run/lock 30-100, held by other (11) for 50"},
		"a holder that takes it again has it since the first time": {func(s *story) {
			s.plugin(0, "c", "ADD", "third", container("c3"), pid(12)).wait(5, 5, "c", event.WaitLock, path).unlock(8, "c", path).
				plugin(0, "a", "ADD", "other", container("c2"), pid(11)).wait(10, 10, "a", event.WaitLock, path).
				wait(20, 20, "a", event.WaitLock, path).plugin(20, "b", "ADD", "bridge").unlock(100, "a", path).
				wait(30, 100, "b", event.WaitLock, path)
		}, "lock flock/run/lock 30-100, held by other (11) for 90"},
		"a holder who took it back later is known by its second time": {func(s *story) {
			s.plugin(0, "a", "ADD", "other", container("c2"), pid(11)).wait(5, 5, "a", event.WaitLock, path).unlock(8, "a", path).
				wait(20, 20, "a", event.WaitLock, path).plugin(20, "b", "ADD", "bridge").unlock(100, "a", path).
				wait(30, 100, "b", event.WaitLock, path)
		}, "lock flock/run/lock 30-100, held by other (11) for 80"},
		"who has it already does not wait for itself": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").wait(5, 5, "b", event.WaitLock, path).wait(30, 100, "b", event.WaitLock, path)
		}, "lock flock/run/lock 30-100"},
		"asking again after a while is another wait": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").wait(5, 10, "b", event.WaitLock, path, inVain("EAGAIN")).
				wait(2010, 2020, "b", event.WaitLock, path, inVain("EAGAIN")).wait(4021, 4030, "b", event.WaitLock, path)
		}, "lock flock/run/lock 5-2020 in 2 tries failed: EAGAIN\nlock flock/run/lock 4021-4030"},
		"asking for two locks in turn is two waits": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").wait(5, 10, "b", event.WaitLock, path, inVain("EAGAIN")).
				wait(20, 25, "b", event.WaitLock, "/run/second", inVain("EAGAIN")).wait(30, 35, "b", event.WaitLock, path)
		}, "lock flock/run/lock 5-35 in 2 tries\nlock flock/run/second 20-25 failed: EAGAIN"},
		"asking again and again is one wait": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").
				wait(10, 10, "b", event.WaitLock, path, inVain("EAGAIN"), heldBy("", 812, "kube-proxy")).
				wait(1010, 1010, "b", event.WaitLock, path, inVain("EAGAIN")).wait(2010, 2010, "b", event.WaitLock, path)
		}, "lock flock/run/lock 10-2010 in 3 tries, held by kube-proxy (812) for 2000 at least"},
		"also if it never gets the lock": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").wait(10, 10, "b", event.WaitLock, path, inVain("EAGAIN")).
				wait(500, 500, "b", event.WaitLock, path, inVain("EAGAIN"))
		}, "lock flock/run/lock 10-500 in 2 tries failed: EAGAIN"},
		"a mutex by its name, however short, and system calls; short locks are only counted": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").wait(1, 1, "b", event.WaitLock, path).
				wait(1, 20, "b", event.WaitMutex, "rtnl", heldBy("a", 11, "bridge")).
				wait(20, 20, "b", event.WaitMutex, "rtnl").wait(21, 30, "b", event.WaitCall, "fsync")
		}, "mutex rtnl 1-20, held by bridge (11) for 0 at least\nmutex rtnl 20-20\nsystem call fsync 21-30"},
		"long sleeps; polls and short sleeps say too little": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").wait(1, 11, "b", event.WaitSleep, "nanosleep").
				wait(12, 500, "b", event.WaitSleep, "nanosleep").wait(1, 600, "b", event.WaitPoll, "epoll_pwait")
		}, "sleep nanosleep 12-500"},
		"a wait whose end was noticed late": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").wait(1, 600, "b", event.WaitSleep, "nanosleep", until(500)).
				wait(601, 800, "b", event.WaitLock, "/l", until(700)).wait(810, 900, "b", event.WaitCall, "fsync", until(5000))
		}, "sleep nanosleep 1-500\nlock flock/l 601-700\nsystem call fsync 810-900"},
		"a system call of which it is known what it asked for is no wait": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").ask(2, 9, "b", "RTM_NEWLINK").wait(2, 9, "b", event.WaitCall, "sendto").
				wait(10, 19, "b", event.WaitCall, "sendto")
		}, "system call sendto 10-19"},
		"a subshell waits for who forked it": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").at(1, &event.Fork{Process: "sub", Parent: "b"}).
				wait(2, 9, "sub", event.WaitCall, "read")
		}, "system call read 2-9"},
		"nothing began before the program did": {
			func(s *story) { s.plugin(5, "b", "ADD", "bridge").wait(-9, 9, "b", event.WaitCall, "read") },
			"system call read 5-9",
		},
	}.each(t, looked, func(s *story) string {
		s.exit(5000, "b").tick(20_000).end()
		return lines(s.inside("bridge"), saidOfWait)
	})
}

func TestRestsOfSeveralThreadsAreOne(t *testing.T) {
	s := looked(t).plugin(0, "b", "ADD", "bridge").
		wait(1, 5, "b", event.WaitPoll, "futex").wait(4, 8, "b", event.WaitPoll, "epoll_pwait").
		wait(20, 30, "b", event.WaitPoll, "futex").wait(10, 40, "b", event.WaitPoll, "futex").exit(50, "b").tick(2000)
	in := s.inside("bridge")
	if got := fmt.Sprint(in.Polling); got != fmt.Sprint([]model.Interval{
		{Start: 1 * ms, End: 8 * ms},
		{Start: 10 * ms, End: 40 * ms},
	}) || in.Tallies[model.FactPoll].Count != 4 {
		t.Errorf("polling %s, %d times", got, in.Tallies[model.FactPoll].Count)
	}
}

func TestAMountIsAFactByItself(t *testing.T) {
	s := tell(t).plugin(0, "b", "ADD", "bridge").
		at(8, &event.Mount{Process: "b", Name: "mount", Start: 2 * ms, Target: "/run/a"}).
		at(8, &event.Mount{Process: "b", Name: "mount", Start: 8 * ms, Target: "/run/b", Error: "EBUSY"})
	im := s.exit(50, "b").tick(3000).inside("bridge")
	got := lines(im, func(m *model.Mount, when model.Interval) string {
		return fmt.Sprintf("%s %d-%d %s", m.Target, when.Start/ms, when.End/ms, m.Error)
	})
	harness.Equal(t, got, "/run/a 2-8 \n/run/b 8-8 EBUSY")
	harness.Equal(t, im.Tallies[model.FactMount], model.Tally{Count: 2, Time: 6 * ms})
}

// everyImage includes agents' work.
func everyImage(op *model.Operation, f func(*model.Image)) {
	var each func(*model.Image)
	each = func(im *model.Image) {
		f(im)
		for _, child := range im.Children {
			each(child)
		}
		for w := range im.Works() {
			each(w.Own)
			each(w.Shared)
		}
	}
	for _, call := range op.Calls {
		for _, run := range call.Runs {
			each(run)
		}
	}
}

// An agent that still tries a lock when its caller is killed waited for it during the call.
func TestALockThatAnAgentStillTriesFor(t *testing.T) {
	s := looked(t).plugin(0, "b", "ADD", "bridge").calls(1, "b", "s1").
		wait(10, 10, "a", event.WaitLock, "/run/lock", inVain("EAGAIN")).
		wait(500, 500, "a", event.WaitLock, "/run/lock", inVain("EAGAIN")).exit(600, "b").tick(20_000).end()
	for _, c := range model.Each[*model.Connection](s.inside("bridge").Facts) {
		harness.Equal(t, lines(c.Work.Own, saidOfWait), "lock flock/run/lock 10-500 in 2 tries failed: EAGAIN")
		harness.Equal(t, c.Work.Own.Facts[0].Attribution.Evidence, model.Candidate)
	}
}
