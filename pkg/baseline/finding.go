package baseline

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/text"
)

// Kind is what a finding is about.
type Kind string

// The kinds.
const (
	// Slower: a spell of being slower than usual begins.
	Slower Kind = "slower"
	// AsUsual: it is over.
	AsUsual Kind = "as usual"
	// Adopted: it goes on for so long that this is usual now.
	Adopted Kind = "usual now"
	// Ended: it is over because the plugin is learnt anew: it changed, or was forgotten for another.
	Ended Kind = "ended"
	// Changed: a new edition is compared with the one before.
	Changed Kind = "changed"
)

// Finding is something that is told once.
type Finding struct {
	Kind
	Key
	// Since is when it began, in nanoseconds since 1970: the spell's end, for one that is over.
	Since int64
	// Was is the usual, or the edition before; Is what comes instead: where a spell begins, of the calls that began it.
	Was, Is Level
	// Program and Configuration say what changed.
	Program, Configuration bool
}

// Ratio is how many times as long the median is as it was.
func (f Finding) Ratio() float64 {
	if f.Was.Median <= 0 {
		return 1
	}
	return float64(f.Is.Median) / float64(f.Was.Median)
}

// What says what changed: "cilium-cni changed". Empty for the other kinds.
func (f Finding) What() string {
	var what []string
	if f.Program {
		what = append(what, f.Plugin)
	}
	if f.Configuration {
		what = append(what, "the configuration")
	}
	if len(what) == 0 {
		return ""
	}
	return strings.Join(what, " and ") + " changed"
}

// String is one sentence: "since 14:02 (cilium-cni changed) ADD takes 2.3×".
func (f Finding) String() string {
	name := f.Command
	if f.Key.Program != "" {
		name = f.Key.Program + " of " + name
	}
	switch f.Kind {
	case Changed:
		return fmt.Sprintf("since %s (%s) %s takes %s", time.Unix(0, f.Since).UTC().Format("15:04"), f.What(), name, Times(f.Ratio()))
	case Slower:
		return fmt.Sprintf("%s is slower than usual: %d of the last %d took longer than %s, by their median %s as long as usual", f.Key, begins, window, f.Was, Times(f.Ratio()))
	case Ended:
		return fmt.Sprintf("%s is no longer called slower than usual: it is learnt anew", f.Key)
	case Adopted:
		return fmt.Sprintf("%s was slower than usual for %s calls, which is usual now: %s", f.Key, number(f.Is.Calls), f.Is)
	}
	return fmt.Sprintf("%s takes as long as usual again: %s", f.Key, f.Was)
}

// String returns "96ms (p99 of 2,310 calls)".
func (l Level) String() string {
	return fmt.Sprintf("%s (p99 of %s calls)", text.Round(l.P99), number(l.Calls))
}

// Compare says how a time compares: "5× its usual 96ms (p99 of 2,310 calls)".
func (l Level) Compare(took time.Duration) string {
	return Times(float64(took)/float64(max(l.P99, 1))) + " its usual " + l.String()
}

// Times writes a ratio: "2.3×", and without a fraction from ten on.
func Times(ratio float64) string {
	decimals := 1
	if ratio >= 9.95 {
		decimals = 0
	}
	return strings.TrimSuffix(strconv.FormatFloat(ratio, 'f', decimals, 64), ".0") + "×"
}

// number writes a number with commas: "2,310".
func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
