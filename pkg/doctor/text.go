package doctor

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Text writes the report for people: what was found first, then what could not be
// checked, then one line of what was well.
func (r Report) Text(out io.Writer) error {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s: %s\n", mark(f.Level), f.Check, f.Summary)
		for _, e := range f.Evidence {
			fmt.Fprintf(&b, "    %s\n", e)
		}
		for _, m := range f.Remedy {
			fmt.Fprintf(&b, "  → %s\n", m)
		}
		b.WriteByte('\n')
	}
	var well []string
	for _, c := range r.Checks {
		switch c.State {
		case Unchecked:
			fmt.Fprintf(&b, "? %s: could not check: %s\n", c.Name, c.Reason)
		case NotApplicable:
			fmt.Fprintf(&b, "- %s: %s\n", c.Name, c.Reason)
		case OK:
			well = append(well, c.Name)
		}
	}
	if len(well) > 0 {
		fmt.Fprintf(&b, "✓ %s\n", strings.Join(well, ", "))
	}
	fmt.Fprintf(&b, "%s in %s\n", r.Summary(), r.Took.Round(time.Millisecond))
	_, err := io.WriteString(out, b.String())
	return err
}

// Summary counts in words.
func (r Report) Summary() string {
	findings, unchecked := r.Count(Found), r.Count(Unchecked)
	said := "healthy"
	switch {
	case findings > 0:
		said = plural(findings, "finding")
	case unchecked > 0:
		said = "nothing found"
	}
	if unchecked > 0 {
		said += ", " + plural(unchecked, "check") + " could not be made"
	}
	return said
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func mark(l Level) string {
	switch l {
	case Problem:
		return "✗"
	case Warning:
		return "!"
	}
	return "·"
}
