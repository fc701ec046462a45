package show

import (
	"cmp"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"

	"github.com/cniscope/cniscope/pkg/attr"
)

// Statistics says of many calls what they took and what the time went into. All times are
// milliseconds.
type Statistics struct {
	Calls  int `json:"calls"`
	Pods   int `json:"pods"`
	Failed int `json:"failed"`
	// Slow counts calls that took longer than their threshold, or a command of theirs did.
	Slow int `json:"slow"`
	// Partial counts calls of which not everything was seen.
	Partial int     `json:"partial"`
	Sum     float64 `json:"sum_ms"`
	// Kinds of calls, those that took longest in all first.
	Kinds []KindOfCall `json:"kinds"`
}

// KindOfCall is the calls of one command for interfaces of one name.
type KindOfCall struct {
	// Name is e.g. "CNI ADD eth0".
	Name    string `json:"name"`
	Pods    int    `json:"pods"`
	Failed  int    `json:"failed"`
	Slow    int    `json:"slow"`
	Partial int    `json:"partial"`
	Distribution
	Rows []Statistic `json:"rows"`
}

// Statistic is about one row.
type Statistic struct {
	Row
	// Calls is how many calls have it.
	Calls int `json:"calls"`
	Distribution
	// Share of the wall time of all calls of this kind in which there was at least one; of a
	// cause, the share of calls by their time. What runs inside another counts for both; only
	// parts sum to 1.
	Share float64 `json:"share"`
}

// Distribution is of durations, in milliseconds. Between two measured ones a quantile is
// interpolated.
type Distribution struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	Sum   float64 `json:"sum_ms"`
	// Sampled: there are so many that the quantiles are those of a random sample.
	Sampled bool `json:"sampled,omitempty"`
}

// Statistics computes what is known.
func (s *Sample) Statistics() Statistics {
	all := Statistics{Pods: s.pods.count(), Kinds: []KindOfCall{}}
	for _, p := range s.sorted() {
		kind := KindOfCall{
			Name: p.name, Pods: p.pods.count(), Failed: p.failed, Slow: p.slow, Partial: p.partial,
			Distribution: distribution(p.took), Rows: []Statistic{},
		}
		for row, series := range p.series {
			_, took := p.of(row)
			kind.Rows = append(kind.Rows, Statistic{
				Row: row, Calls: series.counts.n, Distribution: distribution(series.each),
				Share: toNS(series.times.total() / max(took, 1e-6)), // 1e-6 ms: of what takes no time
			})
		}
		slices.SortFunc(kind.Rows, func(a, b Statistic) int {
			return cmp.Or(compareBy(a.By, b.By), cmp.Compare(b.Share, a.Share), cmp.Compare(a.Name, b.Name))
		})
		all.Kinds = append(all.Kinds, kind)
		all.Calls += kind.Count
		all.Failed += kind.Failed
		all.Slow += kind.Slow
		all.Partial += kind.Partial
		all.Sum = toNS(all.Sum + kind.Sum)
	}
	return all
}

// compareBy orders what is counted: plugins and commands, the inside of plugins, and what
// sums it all up.
func compareBy(a, b string) int {
	place := func(by string) int {
		if i := slices.Index([]string{attr.KindRun, attr.KindDelegate, attr.KindCommand, "", "part", "cause"}, by); i >= 0 {
			return i
		}
		return 3
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
}

func distribution(ms values) Distribution {
	sample := stats.Sample{Xs: slices.Clone(ms.kept)}
	sample.Sort()
	d := Distribution{Count: ms.n, P50: toNS(sample.Quantile(0.5)), P99: toNS(sample.Quantile(0.99)), Sum: toNS(sum(sample.Xs)), Sampled: ms.sampled()}
	if d.Sampled {
		d.Sum = toNS(ms.sum)
	}
	return d
}

// toNS rounds milliseconds to the clock's nanosecond: what is below differs by processor.
func toNS(ms float64) float64 { return math.Round(ms*1e6) / 1e6 }
