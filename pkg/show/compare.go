package show

import (
	"cmp"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"

	"github.com/cniscope/cniscope/pkg/attr"
)

// Word is a row's result.
type Word string

// Results, the most interesting first.
const (
	Slower   Word = "slower"
	Faster   Word = "faster"
	More     Word = "more often"
	Fewer    Word = "less often"
	Appeared Word = "appeared"
	Vanished Word = "vanished"
	// Not significant with so few calls.
	Unclear Word = "too few calls"
	Same    Word = "no significant change"
)

// leastRatio and leastShare are the least change that counts, of the row's time and of the call's (both chosen).
const (
	leastRatio = 0.05
	leastShare = 0.01
)

// schemaDiff is a Comparison's JSON schema: docs/schemas/diff.json.
const schemaDiff = "cniscope.dev/diff/v1"

// Comparison compares samples A (before) and B (after). Times are in milliseconds.
type Comparison struct {
	Schema string         `json:"schema"`
	Kinds  []KindCompared `json:"kinds"`
}

// KindCompared compares calls of one kind.
type KindCompared struct {
	// By is "call", Name such as "CNI ADD eth0".
	Change
	// Sorted by Word, then by time; empty if A or B has no such calls.
	Rows []Change `json:"rows"`
}

// Change compares one row.
type Change struct {
	Row
	Word Word `json:"word"`
	// B's median time per call with the row, and number per call, divided by A's; 0 is unknown.
	Ratio      float64 `json:"ratio,omitempty"`
	CountRatio float64 `json:"count_ratio,omitempty"`
	A          Side    `json:"a"`
	B          Side    `json:"b"`
	time       *test
	count      *test
}

// Side is one row of one sample: calls with the row, Of possible ones. PerCall is the mean number per call.
type Side struct {
	Calls   int     `json:"calls"`
	Of      int     `json:"of"`
	PerCall float64 `json:"per_call"`
	// Time is the median covered in a call with the row, PlusMinus half its confidence interval in percent (0:
	// unknown), Each the median of single durations.
	Time      float64 `json:"time_ms"`
	PlusMinus float64 `json:"plus_minus_percent,omitempty"`
	Each      float64 `json:"each_ms"`
}

// Compare compares two samples.
func Compare(a, b *Sample) Comparison {
	c := Comparison{Schema: schemaDiff, Kinds: []KindCompared{}}
	var tests []*test
	for _, p := range (&Sample{populations: joined(a, b)}).sorted() {
		before, after := a.populations[p.name], b.populations[p.name]
		kind := KindCompared{Change: change(Row{"call", p.name}, before, after), Rows: []Change{}}
		if before != nil && after != nil {
			for row := range p.series {
				kind.Rows = append(kind.Rows, change(row, before, after))
			}
		}
		slices.SortFunc(kind.Rows, func(a, b Change) int {
			return cmp.Or(compareBy(a.By, b.By), cmp.Compare(a.Name, b.Name))
		})
		for _, change := range append([]Change{kind.Change}, kind.Rows...) {
			for _, t := range []*test{change.time, change.count} {
				if t != nil {
					tests = append(tests, t)
				}
			}
		}
		c.Kinds = append(c.Kinds, kind)
	}
	decide(tests)
	for i := range c.Kinds {
		kind := &c.Kinds[i]
		call := min(kind.A.Time, kind.B.Time)
		kind.Word = kind.word(call)
		for j := range kind.Rows {
			kind.Rows[j].Word = kind.Rows[j].word(call)
		}
		slices.SortStableFunc(kind.Rows, func(a, b Change) int {
			return cmp.Or(cmp.Compare(a.Word.place(), b.Word.place()), cmp.Compare(math.Abs(b.moved()), math.Abs(a.moved())))
		})
	}
	return c
}

func joined(samples ...*Sample) map[string]*population {
	all := map[string]*population{}
	for _, s := range samples {
		for name, p := range s.populations {
			if all[name] == nil {
				all[name] = &population{name: name, series: map[Row]*series{}}
			}
			all[name].took.n += p.took.n
			all[name].took.sum += p.took.total()
			for row := range p.series {
				all[name].series[row] = nil
			}
		}
	}
	return all
}

func change(row Row, a, b *population) Change {
	before, ofA := a.find(row)
	after, ofB := b.find(row)
	c := Change{Row: row, A: side(before, ofA), B: side(after, ofB)}
	if before.times.n > 0 && after.times.n > 0 {
		c.Ratio = c.B.Time / max(c.A.Time, 1e-6)
		c.CountRatio = c.B.PerCall / c.A.PerCall
		c.time = compare(before.times.kept, after.times.kept)
	}
	if ofA > 0 && ofB > 0 && row.By != "call" {
		counts := func(s *series, of int) []float64 {
			has, none := s.counts.n, of-s.counts.n
			if of > exactly { // scaled to the number of kept values
				has, none = (has*exactly+of-1)/of, none*exactly/of
			}
			return append(slices.Clone(thinned(s.counts.kept, has)), make([]float64, none)...)
		}
		x, y := counts(before, ofA), counts(after, ofB)
		// No test supports all-equal values.
		if slices.Min(x) != slices.Max(y) || slices.Max(x) != slices.Min(y) {
			c.count = compare(x, y)
		}
	}
	return c
}

func (p *population) find(row Row) (s *series, of int) {
	if p == nil {
		return &series{}, 0
	}
	if row.By == "call" {
		return &series{each: p.took, times: p.took, counts: p.took}, p.took.n
	}
	of, _ = p.of(row)
	if s = p.series[row]; s == nil {
		s = &series{}
	}
	return s, of
}

func side(s *series, of int) Side {
	side := Side{Calls: s.times.n, Of: of, PerCall: float64(s.each.n) / max(1, float64(of))}
	side.Time, side.PlusMinus = median(s.times.kept)
	side.Each, _ = median(s.each.kept)
	if math.IsInf(side.PlusMinus, 0) {
		side.PlusMinus = 0
	}
	return side
}

// word returns the row's result. call is the whole call's duration in milliseconds.
func (c *Change) word(call float64) Word {
	costs := math.Abs(c.moved()) >= leastShare*call
	if c.A.Calls == 0 || c.B.Calls == 0 {
		return c.presence(costs)
	}
	longer := math.Abs(c.Ratio-1) >= leastRatio && costs
	often := c.count != nil && math.Abs(c.CountRatio-1) >= leastRatio && (costs || c.runs())
	switch {
	case longer && c.time.differs && c.Ratio > 1:
		return Slower
	case longer && c.time.differs:
		return Faster
	case often && c.count.differs && c.CountRatio > 1:
		return More
	case often && c.count.differs:
		return Fewer
	case longer && c.time.unclear, often && c.count.unclear:
		return Unclear
	}
	return Same
}

// presence judges a row on one side, which may be chance: short waits and requests are not observed.
func (c *Change) presence(costs bool) Word {
	word, has := Appeared, c.B
	if c.B.Calls == 0 {
		word, has = Vanished, c.A
	}
	switch {
	case c.count == nil:
		return word
	case !costs && !c.runs():
		return Same
	case has.Calls == has.Of, c.count.differs:
		return word
	case c.count.unclear:
		return Unclear
	}
	return Same
}

// runs reports whether the row counts programs, whose number is not random.
func (c *Change) runs() bool {
	return c.By == attr.KindRun || c.By == attr.KindDelegate || c.By == attr.KindCommand
}

func (c Change) moved() float64 { return c.B.whole() - c.A.whole() }

func (s Side) whole() float64 { return s.Time * float64(s.Calls) / max(1, float64(s.Of)) }

func (w Word) place() int {
	return slices.Index([]Word{Slower, Faster, More, Fewer, Appeared, Vanished, Unclear, Same}, w)
}

// alpha is as in benchstat.
const alpha = 0.05

// test answers whether one sample is higher (Mann-Whitney).
type test struct {
	// p is the probability of such a difference between equal samples, least its minimum.
	p     float64
	least float64
	few   bool
	// differs is the answer; unclear means that more values may change it.
	differs, unclear bool
}

// enough calls per side show most differences.
const enough = 10

func compare(a, b []float64) *test {
	sample := func(values []float64) *benchmath.Sample {
		return benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
	}
	return &test{
		p:     benchmath.AssumeNothing.Compare(sample(a), sample(b)).P,
		least: least(len(a), len(b)), few: min(len(a), len(b)) < enough,
	}
}

// least returns the minimum p: 2 divided by the number of orders of n and m values.
func least(n, m int) float64 {
	factorial := func(n int) float64 {
		log, _ := math.Lgamma(float64(n) + 1)
		return log
	}
	return min(1, 2*math.Exp(factorial(n)+factorial(m)-factorial(n+m)))
}

// decide applies Holm's correction (1979): of a hundred separate tests at 5 %, five are wrong.
func decide(tests []*test) {
	slices.SortStableFunc(tests, func(a, b *test) int { return cmp.Compare(a.p, b.p) })
	differs := true
	for i, t := range tests {
		share := alpha / float64(len(tests)-i)
		differs = differs && t.p <= share
		t.differs = differs
		t.unclear = !differs && (t.few || t.least > share)
	}
}

// median returns the median and half its 95 % confidence interval in percent, infinite for up to five values.
func median(values []float64) (center, plusMinus float64) {
	if len(values) == 0 {
		return 0, math.Inf(1)
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds), 0.95)
	return s.Center, 100 * max(s.Hi-s.Center, s.Center-s.Lo) / max(s.Center, 1e-6)
}
