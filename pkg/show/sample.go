package show

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
)

// Sample is what many calls took, and what in them: three numbers for each span, as long as
// these are not too many.
type Sample struct {
	pods        *distinct
	populations map[string]*population // by kind of call: "CNI ADD eth0"
	room        room
}

// population is all calls of one kind.
type population struct {
	name                  string
	pods                  *distinct
	took                  values // of each call, in ms
	failed, slow, partial int
	// whole counts those whose spans are all there: in a storm only the call itself is kept.
	whole     int
	wholeTook float64
	series    map[Row]*series
	room      *room
}

// Row is what is counted: By says what kind of thing, Name which.
type Row struct {
	// By is the kind of span (plugin, command, lock, agent …); or "part", where all of the
	// time went, each instant counted once; or "cause", of whole calls.
	By   string `json:"by"`
	Name string `json:"name"`
}

// series is all there is of one row, in ms.
type series struct {
	each values
	// Of each call that has it: how many, and for how long there was at least one.
	counts, times values
}

// Collect takes what is to be known of operations.
func Collect(operations iter.Seq[*tracepb.ResourceSpans]) *Sample {
	s := &Sample{pods: newDistinct(), populations: map[string]*population{}, room: room{valuesMax, rowsMost}}
	for rs := range operations {
		for _, call := range calls(rs) {
			s.add(call)
		}
	}
	return s
}

// Empty tells whether there was no call.
func (s *Sample) Empty() bool { return len(s.populations) == 0 }

func (s *Sample) add(call *node) {
	name := what(call)
	if s.populations[name] == nil && len(s.populations) >= populationsMost-1 {
		name = other
	}
	p := s.populations[name]
	if p == nil {
		p = &population{name: name, pods: newDistinct(), series: map[Row]*series{}, room: &s.room}
		s.populations[name] = p
	}
	s.pods.add(pod(call))
	p.pods.add(pod(call))
	p.add(call)
}

// sorted returns the populations, those that took longest first.
func (s *Sample) sorted() []*population {
	all := make([]*population, 0, len(s.populations))
	for _, p := range s.populations {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *population) int {
		return cmp.Or(cmp.Compare(b.took.total(), a.took.total()), cmp.Compare(a.name, b.name))
	})
	return all
}

func (p *population) add(call *node) {
	took := milliseconds(call.extent())
	p.took.add(took, p.room)
	p.failed += one(call.failed())
	p.slow += one(call.slow())
	p.partial += one(call.is(attr.PartialKey))
	if cause := call.cause(); cause != "" {
		p.row("cause", cause).add([]float64{took}, took, p.room)
	}
	for key, value := range call.attrs {
		name, isPart := strings.CutPrefix(string(key), attr.TimePrefix)
		if ms := value.GetDoubleValue(); isPart && ms > 0 {
			p.row("part", strings.ReplaceAll(strings.TrimSuffix(name, "_ms"), "_", " ")).add([]float64{ms}, ms, p.room)
		}
	}
	if call.is(attr.ReducedKey) {
		return
	}
	p.whole++
	p.wholeTook += took
	within := map[Row][]extent{}
	call.walk(func(n *node) {
		row := Row{n.kind(), n.label()}
		within[row] = append(within[row], n.extent())
	})
	for row, extents := range within {
		each := make([]float64, 0, len(extents))
		for _, e := range extents {
			each = append(each, milliseconds(e))
		}
		p.row(row.By, row.Name).add(each, milliseconds(union(extents, call.extent())...), p.room)
	}
}

// label names what a span is one of: a plugin without its command, a command, the lock or
// the peer that was waited for.
func (n *node) label() string {
	switch n.kind() {
	case attr.KindRun, attr.KindDelegate:
		return strings.TrimSuffix(n.Name, " "+n.text(attr.CNICommandKey))
	case attr.KindRequest:
		return strings.TrimPrefix(n.Name, "netlink ")
	}
	for _, key := range []attribute.Key{attr.LockPathKey, attr.LockNameKey, attr.AgentKey, semconv.NetworkPeerAddressKey, attr.SystemCallKey} {
		if s := n.text(key); s != "" {
			return s
		}
	}
	return n.Name
}

func (p *population) row(by, name string) *series {
	row := Row{by, name}
	if p.series[row] == nil && p.room.rows <= 0 {
		row.Name = other
	}
	if p.series[row] == nil {
		p.room.rows--
		p.series[row] = &series{}
	}
	return p.series[row]
}

// of is the calls that a row may be in: how many, and how long they took.
func (p *population) of(row Row) (calls int, took float64) {
	if row.By == "part" || row.By == "cause" {
		return p.took.n, p.took.total()
	}
	return p.whole, p.wholeTook
}

func (s *series) add(each []float64, time float64, room *room) {
	for _, one := range each {
		s.each.add(one, room)
	}
	s.counts.add(float64(len(each)), room)
	s.times.add(time, room)
}

// extent is from when to when, in nanoseconds.
type extent struct{ start, end uint64 }

func (n *node) extent() extent {
	return extent{n.StartTimeUnixNano, max(n.StartTimeUnixNano, n.EndTimeUnixNano)}
}

// union joins what overlaps, and cuts off what is outside.
func union(extents []extent, outside extent) (joined []extent) {
	slices.SortFunc(extents, func(a, b extent) int { return cmp.Compare(a.start, b.start) })
	for _, e := range extents {
		e.start, e.end = max(e.start, outside.start), min(e.end, outside.end)
		switch last := len(joined) - 1; {
		case e.start >= e.end:
		case last >= 0 && e.start <= joined[last].end:
			joined[last].end = max(joined[last].end, e.end)
		default:
			joined = append(joined, e)
		}
	}
	return joined
}

func milliseconds(extents ...extent) (ms float64) {
	for _, e := range extents {
		ms += float64(e.end-e.start) / 1e6
	}
	return ms
}
