package show

import (
	"cmp"
	"iter"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
)

// Sample holds the durations of calls and their spans, at random if there are too many.
type Sample struct {
	pods        map[string]bool
	account     *account
	populations map[string]*population // by name: "CNI ADD eth0"
	room        room
}

type population struct {
	name                  string
	pods                  map[string]bool
	took                  values // in ms
	failed, slow, partial int
	// Calls with all spans: in a storm only the call's own is exported.
	whole     int
	wholeTook float64
	series    map[Row]*series
	room      *room
}

// Row identifies a measured thing. By is the kind of span (run, command, lock), "part" of the call's time, or "cause"
// of whole calls. Parts are disjoint.
type Row struct {
	By   string `json:"by"`
	Name string `json:"name"`
}

type series struct {
	each values
	// Per call with the row.
	counts, times values
}

// Collect returns a sample of operations.
func Collect(operations iter.Seq[*tracepb.ResourceSpans]) *Sample {
	s := &Sample{
		pods: map[string]bool{}, account: newAccount(), populations: map[string]*population{},
		room: room{valuesMax, rowsMost},
	}
	for rs := range operations {
		for _, call := range calls(rs) {
			s.add(call)
		}
	}
	return s
}

// Empty reports whether there are no calls.
func (s *Sample) Empty() bool { return len(s.populations) == 0 }

func (s *Sample) add(call *node) {
	name := what(call)
	if s.populations[name] == nil && len(s.populations) >= populationsMost-1 {
		name = other
	}
	p := s.populations[name]
	if p == nil {
		p = &population{name: name, pods: map[string]bool{}, series: map[Row]*series{}, room: &s.room}
		s.populations[name] = p
	}
	s.pods[pod(call)] = true
	s.account.add(call)
	p.pods[pod(call)] = true
	p.add(call)
}

func (s *Sample) sorted() []*population {
	return slices.SortedFunc(maps.Values(s.populations), func(a, b *population) int {
		return cmp.Or(cmp.Compare(b.took.total(), a.took.total()), cmp.Compare(a.name, b.name))
	})
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
	for part, ms := range call.parts() {
		p.row("part", partName(part)).add([]float64{ms}, ms, p.room)
	}
	if call.is(attr.ReducedKey) {
		return
	}
	p.whole++
	p.wholeTook += took
	within := map[Row][]*node{}
	call.walk(func(n *node) {
		row := Row{n.kind(), n.label()}
		within[row] = append(within[row], n)
	})
	for row, nodes := range within {
		each, time := durations(nodes, call)
		series := p.row(row.By, row.Name)
		series.each.averaged = series.each.averaged || len(each) > len(nodes)
		series.add(each, time, p.room)
	}
}

// durations returns the nodes' durations, and the call's time that they cover. A folded series counts as its longest
// and the others' mean.
func durations(nodes []*node, call *node) (each []float64, time float64) {
	var extents []extent
	for _, n := range nodes {
		if !n.series() {
			extents = append(extents, n.extent())
			each = append(each, milliseconds(n.extent()))
			continue
		}
		longest, total := float64(n.longest())/1e6, float64(n.total)/1e6
		each = append(each, longest)
		for range min(n.count-1, seriesMost) {
			each = append(each, (total-longest)/float64(n.count-1))
		}
		time += total
	}
	time += milliseconds(union(extents, call.extent())...)
	return each, min(time, milliseconds(call.extent()))
}

// seriesMost is like limits.images; a file may claim more.
const seriesMost = 5000

func (n *node) label() string {
	switch n.kind() {
	case attr.KindRun, attr.KindDelegate:
		return strings.TrimSuffix(n.Name, " "+n.text(attr.CNICommandKey))
	case attr.KindRequest:
		return strings.TrimPrefix(n.Name, "netlink ")
	}
	for _, key := range []attribute.Key{
		attr.LockPathKey, attr.LockNameKey, attr.AgentKey, semconv.NetworkPeerAddressKey, attr.SystemCallKey,
	} {
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

// extent is in nanoseconds since the epoch.
type extent struct{ start, end uint64 }

func (n *node) extent() extent {
	return extent{n.StartTimeUnixNano, max(n.StartTimeUnixNano, n.EndTimeUnixNano)}
}

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

const (
	// exactly is the number of values kept per row: enough for a p99.
	exactly = 10_000
	// valuesMax bounds all values to 24 MB. Rows beyond it keep valuesLeast or more.
	valuesMax   = 3 << 20
	valuesLeast = 16
	// Beyond these, rows and kinds of calls count as other.
	rowsMost        = 1000
	populationsMost = 100
	other           = "other"
)

type room struct{ values, rows int }

// values holds the exact number, sum and maximum, and a random sample.
type values struct {
	n        int
	sum      float64
	max      float64
	kept     []float64
	averaged bool // some are a series' mean
}

// add counts a value. Without room, each value stays with equal probability (Vitter 1985, algorithm R).
func (v *values) add(x float64, room *room) {
	v.n++
	v.sum += x
	v.max = max(v.max, x)
	if len(v.kept) == v.n-1 && v.n <= exactly && (room.values > 0 || v.n <= valuesLeast) {
		v.kept = append(v.kept, x)
		room.values--
		return
	}
	if i := drawn(v.n); i < len(v.kept) {
		v.kept[i] = x
	}
}

// drawn returns a pseudo-random number below n (splitmix64).
func drawn(n int) int {
	z := uint64(n) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	high, _ := bits.Mul64(z^z>>31, uint64(n))
	return int(high)
}

func (v *values) sampled() bool { return v.n > len(v.kept) }

func (v *values) total() float64 {
	if v.sampled() {
		return v.sum
	}
	return sum(v.kept)
}

func thinned(values []float64, n int) []float64 {
	if len(values) <= n {
		return values
	}
	few := make([]float64, n)
	for i := range few {
		few[i] = values[i*len(values)/n]
	}
	return few
}

func sum(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}
