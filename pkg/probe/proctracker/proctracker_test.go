package proctracker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/probe/image"
	"github.com/cniscope/cniscope/test/harness"
)

const (
	ms     = int64(time.Millisecond)
	window = 20 * ms
)

// life is a process of a simulated world.
type life struct {
	pid, parent  uint32
	began, ended int64
	// runs are its execs by time.
	runs []program
	// of is its plugin, possibly itself; nil for others.
	of *life
}

type program struct {
	at   int64
	name string
}

// world is a simulated node, and a Looker.
type world struct {
	now    int64
	lives  []*life
	events []event.Event
}

const runtimePID = 2

func (w *world) there(pid uint32) *life {
	for _, l := range w.lives {
		if l.pid == pid && l.began <= w.now && w.now < l.ended {
			return l
		}
	}
	return nil
}

func (w *world) Look(pid, up uint32, _ bool) (s Sight, ok bool) {
	s.At, s.Parent = w.now, up
	l := w.there(pid)
	if l == nil {
		return s, false
	}
	s.Parent, s.Began = l.parent, l.began
	name := ""
	for _, p := range l.runs {
		if p.at <= w.now {
			name = p.name
		}
	}
	s.Name = name
	s.Image = image.Image{File: "/bin/" + name, Args: []string{name}}
	if l.of != nil {
		s.Env = []string{"CNI_COMMAND=ADD", "CNI_PATH=/opt", fmt.Sprint("CNI_CONTAINERID=c", l.of.pid)}
	}
	if l.of == l {
		s.File = "/opt/" + name
	}
	return s, true
}

func (w *world) Caller(pid uint32) event.Caller {
	if l := w.there(pid); l != nil && l.of == l {
		return event.CallerRuntime
	}
	return ""
}

func (*world) Runtime(pid uint32) bool { return pid == runtimePID }

func (w *world) Alive(pid uint32, began int64) bool {
	l := w.there(pid)
	return l != nil && l.began == began
}

// told is a notice with the time of its arrival.
type told struct {
	at int64
	n  Notice
}

func (w *world) notices() (all []told) {
	for _, l := range w.lives {
		all = append(all, told{l.began, Notice{Kind: Began, Time: l.began, PID: l.pid, Parent: l.parent}})
		for _, p := range l.runs {
			all = append(all, told{p.at, Notice{Kind: Runs, Time: p.at, PID: l.pid}})
		}
		all = append(all, told{l.ended, Notice{Kind: Ended, Time: l.ended, PID: l.pid, Code: l.pid % 7}})
	}
	slices.SortStableFunc(all, func(a, b told) int { return int(a.at - b.at) })
	return all
}

func populate(r *rand.Rand) *world {
	w := &world{}
	pid := func() uint32 { return 100 + uint32(r.IntN(60)) }
	var below func(parent, of *life, depth int)
	grow := func(up uint32, of *life, from, to int64) *life {
		l := &life{pid: pid(), parent: up, began: from + 1 + r.Int64N(ms), of: of}
		l.ended = l.began + 2*ms + r.Int64N(max(1, to-l.began))
		if l.began >= to {
			return nil // no parent
		}
		for _, other := range w.lives { // PIDs are unique, and reused late
			if other.pid == l.pid && l.began <= other.ended+window && other.began <= l.ended+window {
				return nil
			}
		}
		w.lives = append(w.lives, l)
		at := l.began
		for range r.IntN(3) {
			if at += 1 + r.Int64N(ms/2); at < l.ended {
				l.runs = append(l.runs, program{at, fmt.Sprint("program", r.IntN(100))})
			}
		}
		return l
	}
	below = func(parent, of *life, depth int) {
		for at := parent.began + ms; depth < 3 && at < parent.ended; at += 1 + r.Int64N(8*ms) {
			if l := grow(parent.pid, of, at, parent.ended); l != nil {
				below(l, of, depth+1)
			}
		}
	}
	for at := ms; at < 200*ms; at += r.Int64N(15 * ms) {
		up := uint32(runtimePID)
		plugin := r.IntN(2) == 0
		if !plugin {
			up = 3
		}
		l := grow(up, nil, at, at+30*ms)
		if l == nil {
			continue
		}
		if plugin {
			l.of = l
			l.runs = []program{{l.began + 1000, fmt.Sprint("plugin", l.pid)}}
		}
		below(l, l.of, 0)
	}
	return w
}

func (w *world) tell(t *testing.T, all []told, ticksLate int64) *Tracker {
	t.Helper()
	ticked := int64(-1)
	tracker := New(Options{
		Source: "test", Processes: 1000, Known: 1000, Window: time.Duration(window), Outlive: time.Second,
		Arguments: arguments.Known, Looker: w,
		Sink: func(e event.Event) {
			if e.Time < ticked {
				t.Errorf("%s of %d comes after the tick of %d", event.Kind(e.Body), e.Time, ticked)
			}
			if _, is := e.Body.(*event.Tick); is {
				ticked = e.Time
			}
			w.events = append(w.events, e)
		},
	})
	last := int64(0)
	for _, x := range all {
		for ; last < x.at; last += 5 * ms {
			w.now = last
			tracker.Advance(last-ticksLate, 0)
		}
		w.now = x.at
		tracker.Take(x.n)
	}
	for range 20 {
		w.now += window
		tracker.Advance(w.now, 0)
	}
	return tracker
}

func (w *world) lifeOf(key event.Process) *life {
	for _, l := range w.lives {
		if KeyOf(l.pid, l.began) == key {
			return l
		}
	}
	return nil
}

func (w *world) check(t *testing.T) (execs, unidentified int) {
	t.Helper()
	for _, e := range w.events {
		switch b := e.Body.(type) {
		case *event.Fork:
			if l := w.lifeOf(b.Process); l == nil || l.of == nil || w.lifeOf(b.Parent) == nil || w.lifeOf(b.Parent).pid != l.parent {
				t.Errorf("no such fork: %+v", b)
			}
		case *event.Exec:
			execs++
			l := w.lifeOf(b.Process)
			if l == nil || l.of == nil || b.Root != (l.of == l) || b.ParentPID != l.parent {
				t.Errorf("no such exec: %+v", b)
				continue
			}
			if b.Unidentified {
				unidentified++
				if b.File != "" || b.Args != nil || b.Call != nil {
					t.Errorf("made up: %+v", b)
				}
				continue
			}
			if !slices.ContainsFunc(l.runs, func(p program) bool { return p.at == e.Time && (b.Name == p.name || strings.Contains(b.Name, "‹")) }) {
				t.Errorf("at %d nothing ran: %+v, of %v", e.Time, b, l.runs)
			}
			if b.Root && (b.Call == nil || b.Call.ContainerID != fmt.Sprint("c", l.pid)) {
				t.Errorf("another's call: %+v", b)
			}
		case *event.Exit:
			l := w.lifeOf(b.Process)
			if l == nil || !b.Unseen && (b.Code != l.pid%7 || e.Time < l.ended) || b.Unseen && e.Time < l.ended {
				t.Errorf("no such exit at %d: %+v, %+v", e.Time, b, l)
			}
		}
	}
	return execs, unidentified
}

func (w *world) count() (programs, exits int) {
	for _, l := range w.lives {
		if l.of != nil {
			programs += len(l.runs)
			exits++
		}
	}
	return programs, exits
}

func (w *world) exits() (n int) {
	for _, e := range w.events {
		if _, is := e.Body.(*event.Exit); is {
			n++
		}
	}
	return n
}

func TestWhatIsToldInTimeIsSeen(t *testing.T) {
	for seed := range uint64(50) {
		w := populate(rand.New(rand.NewPCG(seed, 1)))
		tracker := w.tell(t, w.notices(), 0)
		programs, ends := w.count()
		execs, unidentified := w.check(t)
		if execs != programs || unidentified != 0 || w.exits() != ends || tracker.Busy() {
			t.Fatalf("seed %d: %d of %d programs, %d unidentified, %d of %d ends, busy %v", seed, execs, programs, unidentified, w.exits(), ends, tracker.Busy())
		}
	}
}

func TestWhatComesLateOrTwiceIsInTheTree(t *testing.T) {
	missed := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		w := populate(r)
		all := w.notices()
		delayed := slices.Clone(all)
		for i := range delayed {
			if delayed[i].n.Kind != Began { // before its consequences
				delayed[i].at += r.Int64N(window / 4)
			}
		}
		for _, x := range all {
			if r.IntN(4) == 0 {
				x.at += r.Int64N(window / 2)
				delayed = append(delayed, x)
			}
		}
		slices.SortStableFunc(delayed, func(a, b told) int { return int(a.at - b.at) })
		w.tell(t, delayed, window/2)
		_, unidentified := w.check(t)
		missed += unidentified
	}
	if missed == 0 {
		t.Error("nobody was gone before it was looked at: this tests nothing")
	}
}

func TestWhatIsLostIsNotMadeUp(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		w := populate(r)
		all := w.notices()
		some := slices.DeleteFunc(slices.Clone(all), func(told) bool { return r.IntN(10) == 0 })
		tracker := w.tell(t, some, 0)
		for _, e := range w.events { // a lost start changes the key, but not the PID
			if b, is := e.Body.(*event.Exec); is && b.Root && b.Call != nil && b.Call.ContainerID != fmt.Sprint("c", b.PID) {
				t.Errorf("seed %d: another's call: %+v", seed, b)
			}
		}
		tracker.Lost(3)
		for range 200 {
			w.now += 100 * ms
			tracker.Advance(w.now, 0)
		}
		if tracker.Busy() {
			t.Errorf("seed %d: %+v", seed, tracker.Stats())
		}
		harness.Equal(t, tracker.Stats().Lost[LostNotices], 3, "the loss is not counted")
	}
}
