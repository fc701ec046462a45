// Package meter holds readings: what a part of cniscope counts about itself, so that each
// part names and explains its own metrics and none needs a metrics library.
package meter

// Kind says how a value changes.
type Kind int

// The kinds.
const (
	// Counter only grows while the process lives.
	Counter Kind = iota
	// Gauge goes up and down.
	Gauge
)

// Reading is the value of one time series at one moment.
type Reading struct {
	// Name follows Prometheus' conventions, without the prefix "cniscope_": base units,
	// "_total" at the end of a counter's.
	Name string
	// Help explains the metric in one sentence, the same for all of its series.
	Help  string
	Kind  Kind
	Value float64
	// Labels are names and values in turns. The names are the same for all series of a
	// metric. No label holds a pod, a container or an address: the number of series must
	// not grow with the pods of a node.
	Labels []string
}

// Number is what can be counted.
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

// ByReason returns a counter for each reason, labelled "reason" after the labels given. Reasons in
// ever are read as 0 where nothing was counted for them: of a counter that appears with its
// first increment, that increment is never seen (Prometheus, increase()).
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
