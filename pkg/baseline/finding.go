package baseline

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/text"
)

// Kind is the kind of a finding.
type Kind string

// Kinds of findings.
const (
	// Slower means that a spell begins, AsUsual that it ended, Adopted that it became the baseline.
	Slower  Kind = "slower"
	AsUsual Kind = "as usual"
	Adopted Kind = "usual now"
	// Ended means that the spell's baseline was removed.
	Ended Kind = "ended"
	// Changed means that a new edition was compared.
	Changed Kind = "changed"
)

// Finding is an event to report once.
type Finding struct {
	Kind
	Key
	// Since is ns since 1970; for AsUsual, the spell's end.
	Since                  int64
	Was, Is                Level
	Program, Configuration bool
}

// Ratio is the new median by the old.
func (f Finding) Ratio() float64 {
	if f.Was.Median <= 0 {
		return 1
	}
	return float64(f.Is.Median) / float64(f.Was.Median)
}

// What returns changed parts: "cilium-cni changed".
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

// String returns one sentence.
func (f Finding) String() string {
	name := f.Command
	if f.Key.Program != "" {
		name = f.Key.Program + " of " + name
	}
	switch f.Kind {
	case Changed:
		since := time.Unix(0, f.Since).UTC().Format("15:04")
		return fmt.Sprintf("since %s UTC (%s) %s takes %s as long", since, f.What(), name, Times(f.Ratio()))
	case Slower:
		return fmt.Sprintf("%s is slower than usual: %d of the last %d took longer than %s, by their median %s as long as "+
			"usual", f.Key, begins, window, f.Was, Times(f.Ratio()))
	case Ended:
		return fmt.Sprintf("%s is no longer called slower than usual: its baseline is learned again", f.Key)
	case Adopted:
		return fmt.Sprintf("%s was slower than usual for %s calls, which is usual now: %s", f.Key, number(f.Is.Calls), f.Is)
	}
	return fmt.Sprintf("%s takes as long as usual again: %s", f.Key, f.Was)
}

// String returns "96ms (p99 of 2,310 calls)".
func (l Level) String() string {
	return fmt.Sprintf("%s (p99 of %s calls)", text.Round(l.P99), number(l.Calls))
}

// Compare returns "5× its p99 of 96ms (2,310 calls)".
func (l Level) Compare(took time.Duration) string {
	times := Times(float64(took) / float64(max(l.P99, 1)))
	return fmt.Sprintf("%s its p99 of %s (%s calls)", times, text.Round(l.P99), number(l.Calls))
}

// Times formats "2.3×", from ten on without fraction.
func Times(ratio float64) string {
	decimals := 1
	if ratio >= 9.95 {
		decimals = 0
	}
	return strings.TrimSuffix(strconv.FormatFloat(ratio, 'f', decimals, 64), ".0") + "×"
}

func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
