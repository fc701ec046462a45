// Package meter defines metric readings, so that each package names and explains its own metrics without a metrics
// library.
package meter

// Kind is the type of a metric.
type Kind int

// Kinds of metrics.
const (
	Counter Kind = iota
	Gauge
)

// Reading is the value of one time series.
type Reading struct {
	// Name follows Prometheus' conventions, without the prefix "cniscope_".
	Name string
	// Help is one sentence, equal for all series of the metric.
	Help  string
	Kind  Kind
	Value float64
	// Labels alternates names and values. All series of a metric have the same names. No label holds a pod,
	// container or address, so that the number of series does not grow with pods.
	Labels []string
}

// Number is a type that can be counted.
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

// ByReason returns one counter per reason, with the label "reason" after labels. Reasons in ever start at 0, because
// Prometheus' increase() misses the first increment of a new series.
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
