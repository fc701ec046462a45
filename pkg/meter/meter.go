// Package meter defines metric readings, so that packages describe their metrics without a metrics library.
package meter

// Kind is the type of a metric.
type Kind int

// Kinds of metrics.
const (
	Counter Kind = iota
	Gauge
)

// Reading is a series' value.
type Reading struct {
	// Name lacks the prefix "cniscope_".
	Name  string
	Help  string
	Kind  Kind
	Value float64
	// Labels alternates names and values, with equal names per metric. None holds a pod, container or address, for
	// series must not grow with pods.
	Labels []string
}

// Number can be counted.
type Number interface {
	~int | ~int64 | ~uint64 | ~float64
}

// Count returns the reading of a counter.
func Count[N Number](name, help string, n N, labels ...string) Reading {
	return Reading{name, help, Counter, float64(n), labels}
}

// Level returns the reading of a gauge.
func Level[N Number](name, help string, n N, labels ...string) Reading {
	return Reading{name, help, Gauge, float64(n), labels}
}

// ByReason returns a counter per reason, labeled after labels. Reasons in ever start at 0: Prometheus' increase()
// misses a new series' first increment.
func ByReason[R ~string](name, help string, counts map[R]uint64, ever []R, labels ...string) (all []Reading) {
	add := func(reason R, n uint64) {
		all = append(all, Count(name, help, n, append(labels[:len(labels):len(labels)], "reason", string(reason))...))
	}
	for _, reason := range ever {
		if _, counted := counts[reason]; !counted {
			add(reason, 0)
		}
	}
	for reason, n := range counts {
		add(reason, n)
	}
	return all
}
