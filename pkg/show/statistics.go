package show

import (
	"cmp"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"

	"github.com/cniscope/cniscope/pkg/attr"
)

// schemaSummary is Statistics' JSON schema: docs/schemas/summary.json.
const schemaSummary = "cniscope.dev/summary/v1"

// Statistics sums up calls. Times are in milliseconds.
type Statistics struct {
	Schema string `json:"schema"`
	Calls  int    `json:"calls"`
	Pods   int    `json:"pods"`
	Failed int    `json:"failed"`
	// Slow calls exceeded a threshold, as a whole or in a part. Partial were incompletely observed.
	Slow    int          `json:"slow"`
	Partial int          `json:"partial"`
	Sum     float64      `json:"sum_ms"`
	Spent   []Spent      `json:"spent"`
	Kinds   []KindOfCall `json:"kinds"`
}

// KindOfCall is the calls of one command and interface name ("CNI ADD eth0").
type KindOfCall struct {
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
	Calls int `json:"calls"`
	Distribution
	// The part of the calls' wall time that the row covers; for a cause, of the calls that have it. Nested rows
	// overlap; only parts sum to 1.
	Share float64 `json:"share"`
}

const p99Least = 100

// Distribution is in milliseconds, with interpolated quantiles.
type Distribution struct {
	Count int      `json:"count"`
	P50   float64  `json:"p50_ms"`
	P99   *float64 `json:"p99_ms,omitempty"`
	Max   float64  `json:"max_ms"`
	Sum   float64  `json:"sum_ms"`
	// Quantiles are of a random sample.
	Sampled bool `json:"sampled,omitempty"`
	// Folded commands count with their mean; number, sum and maximum are exact.
	Averaged bool `json:"averaged,omitempty"`
}

// Statistics sums up the sample.
func (s *Sample) Statistics() Statistics {
	all := Statistics{Schema: schemaSummary, Pods: len(s.pods), Spent: s.account.list(), Kinds: []KindOfCall{}}
	for _, p := range s.sorted() {
		kind := KindOfCall{
			Name: p.name, Pods: len(p.pods), Failed: p.failed, Slow: p.slow, Partial: p.partial,
			Distribution: distribution(p.took), Rows: []Statistic{},
		}
		for row, series := range p.series {
			_, took := p.of(row)
			kind.Rows = append(kind.Rows, Statistic{
				Row: row, Calls: series.counts.n, Distribution: distribution(series.each),
				Share: toNS(series.times.total() / max(took, 1e-6)), // avoids a division by zero
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
	d := Distribution{
		Count: ms.n, P50: toNS(sample.Quantile(0.5)), Max: toNS(ms.max), Sum: toNS(sum(sample.Xs)),
		Sampled: ms.sampled(), Averaged: ms.averaged,
	}
	if d.Count >= p99Least {
		p99 := toNS(sample.Quantile(0.99))
		d.P99 = &p99
	}
	if d.Sampled {
		d.Sum = toNS(ms.sum)
	}
	return d
}

// toNS rounds to nanoseconds: smaller digits differ between processors.
func toNS(ms float64) float64 { return math.Round(ms*1e6) / 1e6 }
