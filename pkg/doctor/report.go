package doctor

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/text"
)

// Level is the severity of a finding.
type Level string

// Levels of a finding.
const (
	// Problem: pods get no network, or cniscope sees nothing.
	Problem Level = "problem"
	// Warning: the fault does harm, or may.
	Warning Level = "warning"
	// Note does not count as a finding.
	Note Level = "note"
)

// Finding is one fault.
type Finding struct {
	Check    string   `json:"check"`
	Level    Level    `json:"level"`
	Summary  string   `json:"summary"`
	Evidence []string `json:"evidence"`
	Remedy   []string `json:"remedy"`
}

func (l Level) finding(summary string, evidence []string, remedy ...string) Finding {
	return Finding{Level: l, Summary: summary, Evidence: evidence, Remedy: remedy}
}

// State is the result of a check.
type State string

// States of a check.
const (
	OK            State = "ok"
	Found         State = "findings"
	NotApplicable State = "not applicable"
	Unchecked     State = "could not check"
)

// Outcome is the result of one check.
type Outcome struct {
	Name   string `json:"name"`
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"`
}

// Report is the result of an examination.
type Report struct {
	Node     string        `json:"node,omitempty"`
	Time     time.Time     `json:"time"`
	Took     time.Duration `json:"took_ns"`
	Findings []Finding     `json:"findings"`
	Checks   []Outcome     `json:"checks"`
}

// Exit codes.
const (
	ExitHealthy   = 0
	ExitFindings  = 1
	ExitUnchecked = 3
)

// ExitCode is 1 for findings, else 3 if a check could not be made, else 0.
func (r Report) ExitCode() int {
	code := ExitHealthy
	for _, c := range r.Checks {
		switch c.State {
		case Found:
			return ExitFindings
		case Unchecked:
			code = ExitUnchecked
		}
	}
	return code
}

// Count returns the number of checks in a state; for Found, of findings.
func (r Report) Count(s State) (n int) {
	if s == Found {
		for _, f := range r.Findings {
			if f.Level != Note {
				n++
			}
		}
		return n
	}
	for _, c := range r.Checks {
		if c.State == s {
			n++
		}
	}
	return n
}

// Text writes the report for people.
func (r Report) Text(out io.Writer) error {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s: %s\n", marks[f.Level], f.Check, f.Summary)
		for _, e := range f.Evidence {
			fmt.Fprintf(&b, "    %s\n", e)
		}
		for _, m := range f.Remedy {
			fmt.Fprintf(&b, "  → %s\n", m)
		}
		b.WriteByte('\n')
	}
	var well []string
	printed := func(c Outcome) bool {
		return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Check == c.Name })
	}
	unchecked, said := map[string][]string{}, map[string]bool{} // by reason
	for _, c := range r.Checks {
		if c.State == Unchecked {
			unchecked[c.Reason] = append(unchecked[c.Reason], c.Name)
		}
	}
	for _, c := range r.Checks {
		switch c.State {
		case Unchecked:
			if !said[c.Reason] {
				fmt.Fprintf(&b, "? %s: could not check: %s\n", strings.Join(unchecked[c.Reason], ", "), c.Reason)
			}
			said[c.Reason] = true
		case NotApplicable:
			fmt.Fprintf(&b, "- %s: %s\n", c.Name, c.Reason)
		case OK:
			if !printed(c) {
				well = append(well, c.Name)
			}
		}
	}
	if len(well) > 0 {
		fmt.Fprintf(&b, "✓ %s\n", strings.Join(well, ", "))
	}
	legend := slices.DeleteFunc(strings.Split(meanings, ", "), func(meaning string) bool {
		mark, _, _ := strings.Cut(meaning, " ")
		return !strings.Contains("\n"+b.String(), "\n"+mark+" ")
	})
	fmt.Fprintf(&b, "(%s)\n", strings.Join(legend, ", "))
	fmt.Fprintf(&b, "%s (%s)\n", r.Summary(), r.Took.Round(time.Millisecond))
	_, err := io.WriteString(out, b.String())
	return err
}

// Summary returns the counts in words.
func (r Report) Summary() string {
	findings, unchecked := r.Count(Found), r.Count(Unchecked)
	notes := len(slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Level != Note }))
	said := "healthy"
	switch {
	case findings > 0:
		said = text.Count(findings, "finding")
	case unchecked > 0:
		said = "nothing found"
	}
	if notes > 0 {
		said += ", " + text.Count(notes, "note")
	}
	if unchecked > 0 {
		said += ", " + text.Count(unchecked, "check") + " could not be made"
	}
	return said
}

const meanings = "✗ problem, ! warning, · note, ? could not check, - does not apply, ✓ nothing found"

var marks = map[Level]string{Problem: "✗", Warning: "!", Note: "·"}
