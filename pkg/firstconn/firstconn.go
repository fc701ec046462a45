// Package firstconn looks at pods without a first connection, and at late ones.
package firstconn

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/source"
)

const (
	// watched is as long as the timeline waits.
	watched = time.Minute
	// breath is between looks for failed calls.
	breath = 100 * time.Millisecond
)

// Node examines the node for a Source.
type Node struct {
	// Tries reads namespaces that still have a process.
	Tries func(*procfs.Residents, []event.Namespace) map[event.Namespace]*event.Tries
	// InTheWay returns what drops packets of pods, by sandbox, and under "" of all, if asked for.
	InTheWay  func(ctx context.Context, sandboxes []string, node bool) map[string][]event.Obstacle
	Found     func(context.Context, event.Want) *event.Found
	Drops     func() source.Drops // may be or return nil
	Residents *procfs.Residents
}

// Source runs once.
type Source struct {
	node  Node
	after time.Duration
	pace  time.Duration // between looks without a late connection
	limit int
	wake  chan struct{}
	wants chan want

	skipped atomic.Uint64

	mu    sync.Mutex
	pods  map[event.Namespace]*pod
	paced int64 // no look at silent pods before, monotonic ns
}

type want struct {
	sandbox string
	at      time.Time
	event.Want
}

type pod struct {
	sandbox    string
	ended, due int64 // monotonic ns
	connected  bool
}

// New returns a source that looks at up to limit pods: after a time from their setup, and whenever it doubled.
func New(n Node, after time.Duration, limit int) *Source {
	return &Source{
		node: n, after: after, pace: max(after/2, time.Second), limit: limit,
		wake: make(chan struct{}, 1), wants: make(chan want, limit),
		pods: map[event.Namespace]*pod{}, paced: clock.Monotonic(),
	}
}

// Name is "first connections".
func (*Source) Name() string { return "first connections" }

// Stats counts skipped looks.
func (s *Source) Stats() source.Stats {
	return source.Stats{Readings: []meter.Reading{meter.Count("looks_skipped_total",
		"Looks at silent pods, and after failed calls, beyond limits.operations or too late.", s.skipped.Load())}}
}

// Await begins to look at a pod whose setup ended, or looks once if its connection was late.
func (s *Source) Await(c model.Connected) {
	s.mu.Lock()
	defer s.mu.Unlock()
	late := c.At != 0
	if !late && len(s.pods) >= s.limit {
		s.skipped.Add(1)
		return
	}
	if !late {
		s.drops().Follow(c.NetNS, c.Addresses, c.End+int64(watched+s.pace))
	}
	s.pods[c.NetNS] = &pod{sandbox: c.ContainerID, ended: c.End, due: c.End + int64(s.after), connected: late}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

type noDrops struct{}

func (noDrops) Follow(event.Namespace, []string, int64) {}
func (noDrops) Asks(event.Namespace)                    {}
func (noDrops) Seen(event.Namespace) []event.Drop       { return nil }
func (noDrops) Forget(event.Namespace)                  {}

func (s *Source) drops() source.Drops {
	if s.node.Drops == nil {
		return noDrops{}
	}
	return cmp.Or(s.node.Drops(), source.Drops(noDrops{}))
}

// Connected ends it.
func (s *Source) Connected(in event.Namespace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, in)
	s.drops().Forget(in)
}

// Tell stops watching stopped pods.
func (s *Source) Tell(e event.Event) {
	switch b, is := e.Body.(*event.Sandbox); {
	case !is:
	case b.Phase == event.SandboxRunning && b.PID != 0:
		s.node.Residents.Note(int(b.PID))
	case b.Phase == event.SandboxStopped, b.Phase == event.SandboxRemoved:
		s.mu.Lock()
		defer s.mu.Unlock()
		maps.DeleteFunc(s.pods, func(_ event.Namespace, p *pod) bool { return p.sandbox == b.ID && !p.connected })
	}
}

// Want looks for a failed call.
func (s *Source) Want(sandbox string, w event.Want) {
	select {
	case s.wants <- want{sandbox, time.Now(), w}:
	default:
		s.skipped.Add(1)
	}
}

func (s *Source) find(ctx context.Context, sink event.Sink) {
	for {
		var waiting []want
		select {
		case w := <-s.wants:
			waiting = append(waiting, w)
		case <-ctx.Done():
			return
		}
		for range len(s.wants) {
			waiting = append(waiting, <-s.wants)
		}
		for {
			waiting = slices.DeleteFunc(waiting, func(w want) bool {
				late := time.Since(w.at) > event.LookPatience
				if late {
					s.skipped.Add(1)
				}
				return late
			})
			if len(waiting) == 0 {
				break
			}
			one := waiting[0].Want
			found := s.node.Found(ctx, one)
			waiting = slices.DeleteFunc(waiting, func(w want) bool {
				if w.Want == one {
					sink(source.Now(&event.Look{ContainerID: w.sandbox, Found: found}))
				}
				return w.Want == one
			})
		}
		if !clock.Wait(ctx, breath) {
			return
		}
	}
}

// Run looks until ctx ends.
func (s *Source) Run(ctx context.Context, sink event.Sink) error {
	timer := time.NewTimer(watched)
	defer timer.Stop()
	var failed sync.WaitGroup
	failed.Go(func() { s.find(ctx, sink) })
	defer failed.Wait()
	for {
		select {
		case <-s.wake:
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
		due, next := s.due(clock.Monotonic())
		if len(due) > 0 {
			s.look(ctx, due, sink)
		}
		timer.Reset(next)
	}
}

func (s *Source) due(now int64) (due map[event.Namespace]pod, next time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	due, next = map[event.Namespace]pod{}, watched
	early := now < s.paced
	for in, p := range s.pods {
		if p.connected || p.due <= now && !early {
			due[in] = *p
			p.due = now + max(now-p.ended, int64(s.after))
		}
		if p.connected || p.due-p.ended > int64(watched) {
			delete(s.pods, in)
			continue
		}
		next = min(next, time.Duration(p.due-now))
	}
	if len(due) > 0 && !early {
		s.paced = now + int64(s.pace)
	}
	return due, max(next, time.Duration(s.paced-now))
}

func (s *Source) look(ctx context.Context, due map[event.Namespace]pod, sink event.Sink) {
	namespaces := slices.SortedFunc(maps.Keys(due), func(a, b event.Namespace) int {
		return strings.Compare(a.Key, b.Key)
	})
	tries := s.node.Tries(s.node.Residents, namespaces)
	var sandboxes []string
	for _, p := range due {
		sandboxes = append(sandboxes, p.sandbox)
	}
	unanswered := slices.ContainsFunc(namespaces, func(in event.Namespace) bool { return tries[in].Unanswered() })
	obstacles := s.node.InTheWay(ctx, sandboxes, unanswered)
	for _, in := range namespaces {
		l := &event.Look{ContainerID: due[in].sandbox, NetNS: in, Connected: due[in].connected, Tries: tries[in]}
		l.Obstacles = obstacles[l.ContainerID]
		if l.Tries.Unanswered() {
			l.Obstacles = append(l.Obstacles, obstacles[""]...)
		}
		l.Drops = s.drops().Seen(in)
		if t := l.Tries; t != nil && t.Asked > t.Answered && !l.Connected {
			s.drops().Asks(in)
		}
		if l.Connected || len(l.Obstacles) > 0 || len(l.Drops) > 0 {
			sink(source.Now(l))
		}
	}
}

const silentMax = 4

// Parse reads /proc/PID/net/snmp, netstat and arp; missing counters are 0.
func Parse(snmp, netstat, arp string) *event.Tries {
	count := counters(snmp + "\n" + netstat)
	sent := count["Icmp OutDestUnreachs"]
	own := min(count["Icmp InDestUnreachs"], sent-min(sent, count["Udp NoPorts"]))
	t := &event.Tries{
		Opened: count["Tcp ActiveOpens"], Failed: count["Tcp AttemptFails"], SYNs: count["TcpExt TCPSynRetrans"],
		Unroutable: count["Ip OutNoRoutes"], Unreached: count["Icmp InDestUnreachs"] - own,
		Unresolved: own,
		Asked:      count["Udp OutDatagrams"], Answered: count["Udp InDatagrams"],
	}
	for line := range strings.Lines(arp) {
		// Flag 2, ATF_COM: the address is known.
		f := strings.Fields(line)
		if len(f) != 6 || !strings.HasPrefix(f[2], "0x") || len(t.Silent) >= silentMax {
			continue
		}
		if flags, err := strconv.ParseUint(f[2][2:], 16, 32); err == nil && flags&2 == 0 {
			t.Silent = append(t.Silent, f[0])
		}
	}
	return t
}

// used is false if netstat and arp are empty.
func used(snmp string) bool {
	count := counters(snmp)
	return count["Ip OutRequests"]+count["Ip ForwDatagrams"]+count["Tcp ActiveOpens"]+count["Tcp InSegs"] > 0
}

func counters(text string) map[string]uint64 {
	all := map[string]uint64{}
	var names []string
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(names) != len(f) || names[0] != f[0] {
			names = f
			continue
		}
		for i := 1; i < len(f); i++ {
			if n, err := strconv.ParseUint(f[i], 10, 64); err == nil && n != 0 {
				all[strings.TrimSuffix(f[0], ":")+" "+names[i]] = n
			}
		}
		names = nil
	}
	return all
}
