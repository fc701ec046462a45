package winproc

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/proctracker"
	"github.com/cniscope/cniscope/pkg/windows/etw"
)

const (
	// A process can be identified so long after its start: beyond triesMax attempts and the longest snapshot interval.
	window    = 250 * time.Millisecond
	tickEvery = int64(20 * time.Millisecond)
	// quietAfter lets consumers catch up.
	quietAfter = int64(time.Second)
	countEvery = int64(200 * time.Millisecond)
	// For how long processes that outlive their plugin are followed.
	outlive = 30 * time.Second
	// Parents that are remembered, about 150 bytes each.
	known   = 1 << 16
	lagging = int64(time.Second)
)

// Teller reports starts and ends: etw.Session or Snapshots.
type Teller interface {
	// Run reports until ctx ends, from one goroutine at a time.
	Run(ctx context.Context, t etw.Taker) error
}

// Source turns a Teller's reports into events. Run it once.
type Source struct {
	options  Options
	teller   Teller
	anchored atomic.Pointer[[]anchor.Anchor]

	mu    sync.Mutex
	stats Stats
}

// New returns a Source for a Teller.
func New(o Options, teller Teller) *Source {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &Source{options: o, teller: teller}
	s.anchored.Store(&[]anchor.Anchor{})
	return s
}

// Stats is safe for concurrent use.
func (s *Source) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// Run delivers events until ctx ends, present processes first.
func (s *Source) Run(ctx context.Context, sink event.Sink) error {
	if s.options.Anchors != nil {
		defer s.options.Anchors.Watch(func(a []anchor.Anchor) { s.anchored.Store(&a) })()
	}
	r := newReader(s, sink)
	defer r.close()
	if err := r.begin(); err != nil {
		return err
	}
	return s.teller.Run(ctx, r)
}

type reader struct {
	*Source
	watched map[uint32]*watched
	lives   func(anchor.Anchor) bool
	agents  *agents
	tracker *proctracker.Tracker
	sink    event.Sink
	// polls means that polling finds ends.
	polls bool
	// ahead is the wall clock minus the monotonic clock, in ns.
	ahead               int64
	tied                clock.Tie
	ticked, busy, count int64 // monotonic ns
	read                uint64
	unread              map[string]uint64
}

func newReader(s *Source, sink event.Sink) *reader {
	_, polls := s.teller.(*Snapshots)
	r := &reader{
		Source: s, watched: map[uint32]*watched{}, lives: anchor.Anchor.Alive, sink: sink, polls: polls,
		unread: map[string]uint64{},
	}
	r.agents = newAgents(r, s.options.Agents)
	r.tracker = proctracker.New(proctracker.Options{
		Source: "probe", Processes: s.options.Processes, Known: known, Window: window, Outlive: outlive,
		Arguments: s.options.Arguments, Looker: r, Sink: r.deliver,
	})
	return r
}

func (r *reader) monotonic(f Filetime) int64 { return f.unix() - r.ahead }

func (r *reader) clock() int64 {
	mono, wall := r.options.System.Clocks()
	r.ahead = wall - mono
	return mono
}

// deliver ties the clocks before the first event, and merges agents' events.
func (r *reader) deliver(e event.Event) {
	r.agents.flush(e.Time)
	if exec, is := e.Body.(*event.Exec); is && exec.Root {
		r.tie()
	}
	r.sink(e)
	r.agents.note(e)
}

func (r *reader) tie() {
	if mono := r.clock(); r.tied.Due(mono, mono+r.ahead) {
		r.sink(event.Event{Time: mono, Body: &event.Clock{Wall: mono + r.ahead}})
	}
}

func (r *reader) begin() error {
	r.tie()
	all, err := r.options.System.Processes()
	if err != nil {
		return err
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.PID, b.PID))
	})
	for _, e := range all {
		w := r.watch(e)
		r.tracker.Present(e.PID, e.Parent, r.monotonic(e.Created), r.clock())
		if w != nil && w.state != early {
			r.release(w)
		}
	}
	now := r.clock()
	r.tracker.Advance(now, 0)
	r.tell(now)
	r.options.Log.Info(
		"observing CNI calls by the process table: plugins and their commands, not what they ask of Windows",
		"in_progress", r.tracker.Stats().Followed)
	return nil
}

// watch returns nil except for children of the runtime or of a watched process.
func (r *reader) watch(e Entry) *watched {
	if w := r.watched[e.PID]; w != nil {
		if w.created == e.Created {
			return w
		}
		r.drop(w) // the PID was reused
	}
	if up := r.watched[e.Parent]; (up == nil || up.created > e.Created) && !r.runtime(e.Parent, e.Created) ||
		len(r.watched) >= 2*r.options.Processes {
		return nil
	}
	w := &watched{pid: e.PID, parent: e.Parent, created: e.Created, name: e.Name, since: r.monotonic(e.Created)}
	r.watched[e.PID] = w
	if w.process = r.open(e); w.process == nil {
		w.state = failed
		r.unread[unreadGone]++
		return w
	}
	w.file, _ = w.process.File()
	r.look(w)
	return w
}

func (r *reader) open(e Entry) Process {
	p, err := r.options.System.Open(e.PID)
	if err != nil {
		return nil
	}
	if created, err := p.Created(); err != nil || e.Created != 0 && created != e.Created {
		p.Close()
		return nil
	}
	return p
}

func (r *reader) look(w *watched) (done bool) {
	before := w.state
	done, why := w.look()
	switch {
	case why != "":
		r.unread[why]++
	case w.state != before:
		r.read++
	}
	return done
}

// Soon implements etw.Taker: it reads a possible plugin or plugin's child at once.
func (r *reader) Soon(pid uint32, created int64) {
	if w := r.watched[pid]; w != nil && (created == 0 || w.created == Filetime(created)) {
		return
	}
	p, err := r.options.System.Open(pid)
	if err != nil {
		return
	}
	defer p.Close()
	at, err := p.Created()
	up, err2 := p.Parent()
	if err == nil && err2 == nil && (created == 0 || at == Filetime(created)) {
		file, _ := p.File()
		e := Entry{PID: pid, Parent: up, Created: at, Name: base(file)}
		if r.watch(e) == nil {
			r.agents.began(e)
		}
	}
}

func (r *reader) Take(c etw.Change) {
	if c.Kind == proctracker.Began {
		r.began(c)
	} else {
		r.ended(c)
	}
}

func (r *reader) began(c etw.Change) {
	e := Entry{PID: c.PID, Parent: c.Parent, Created: Filetime(c.Created), Name: base(c.Image)}
	w := r.watched[c.PID]
	if c.Created != 0 {
		w = r.watch(e)
	}
	if w == nil {
		r.agents.began(e)
	} else {
		w.heard(c, !r.runtime(w.parent, w.created))
	}
	r.tracker.Take(c.Notice)
	if w == nil || w.state != early {
		r.runs(c.PID, c.Time, w)
		return
	}
	w.began = c.Time
}

func (r *reader) runs(pid uint32, at int64, w *watched) {
	r.tracker.Take(proctracker.Notice{Kind: proctracker.Runs, PID: pid, Time: at})
	if w != nil {
		r.release(w)
	}
}

func (r *reader) release(w *watched) {
	if r.runtime(w.parent, w.created) && !w.told.command() {
		r.drop(w)
	}
}

func (r *reader) ended(c etw.Change) {
	w := r.watched[c.PID]
	if w != nil && (c.Created == 0 || w.created == Filetime(c.Created)) {
		if w.process != nil {
			if end, over := w.process.Ended(); over {
				c.Time, c.Code, c.Used.CPU = r.monotonic(end.At), end.Code, end.CPU
			}
		}
		if w.state == early {
			if w.whole {
				w.state = read
				r.read++
			} else {
				w.state = failed
				r.unread[unreadGone]++
			}
			r.runs(w.pid, w.began, w)
		}
		r.drop(w)
	}
	r.tracker.Take(c.Notice)
}

func (r *reader) drop(w *watched) {
	if w.process != nil {
		w.process.Close()
		w.process = nil
	}
	if r.watched[w.pid] == w {
		delete(r.watched, w.pid)
	}
}

func (r *reader) close() {
	r.agents.close()
	for _, w := range r.watched {
		r.drop(w)
	}
}

func (r *reader) Lost(n uint64) {
	for _, w := range r.watched {
		if w.process == nil { // its end is unknown
			r.drop(w)
		}
	}
	r.tracker.Lost(n)
}

// Advance implements etw.Taker; it retries young processes.
func (r *reader) Advance(read int64) {
	now := r.clock()
	for _, pid := range slices.Sorted(maps.Keys(r.watched)) {
		w := r.watched[pid]
		if w.state == early && r.look(w) {
			r.runs(w.pid, w.began, w)
		}
		if w.process == nil {
			continue
		}
		// Event tracing reports the end, unless lost.
		if end, over := w.process.Ended(); over && (r.polls || r.monotonic(end.At) < now-toldWithin) {
			notice := proctracker.Notice{Kind: proctracker.Ended, PID: w.pid, Time: r.monotonic(end.At)}
			r.ended(etw.Change{Notice: notice, Created: int64(w.created)})
		}
	}
	r.agents.advance(now)
	if r.tracker.Busy() || len(r.agents.work) > 0 || r.options.Busy != nil && r.options.Busy() {
		r.busy = now
	}
	if now-r.busy < quietAfter && now-r.ticked >= tickEvery {
		r.ticked = now
		lag := now - read
		if lag < lagging {
			lag = 0
		}
		r.tracker.Advance(read, lag)
	}
	if now-r.count >= countEvery {
		r.tell(now)
	}
}

func (r *reader) tell(now int64) {
	r.count = now
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Stats, r.stats.Read, r.stats.Unread = r.tracker.Stats(), r.read, maps.Clone(r.unread)
	if s, polls := r.teller.(*Snapshots); polls {
		r.stats.Snapshots, r.stats.Spent, r.stats.Interval = s.taken, s.spent, s.interval
	}
}

var _ etw.Taker = (*reader)(nil)
