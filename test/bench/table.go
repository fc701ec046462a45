//go:build linux

package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

type row struct {
	figure string
	value  float64
	unit   string
	budget float64
	note   string
}

func (r row) over() bool { return r.budget > 0 && r.value > r.budget }

func write(w io.Writer, rows []row) (over int) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "figure\tvalue\tbudget\tholds\tmore")
	for _, r := range rows {
		budget, holds := "-", "-"
		if r.budget > 0 {
			budget, holds = fmt.Sprintf("%g %s", r.budget, r.unit), "yes"
		}
		if r.over() {
			holds = "NO"
			over++
		}
		fmt.Fprintf(t, "%s\t%s %s\t%s\t%s\t%s\n", r.figure, short(r.value), r.unit, budget, holds, r.note)
	}
	t.Flush()
	return over
}

// short formats three digits without exponent.
func short(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}
