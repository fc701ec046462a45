//go:build linux

package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// row is one figure.
type row struct {
	figure string
	value  float64
	unit   string
	// budget is what value must not exceed; 0 where there is none.
	budget float64
	note   string
}

func (r row) over() bool { return r.budget > 0 && r.value > r.budget }

// write draws the table and tells how many figures are over their budget.
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
		fmt.Fprintf(t, "%s\t%.3g %s\t%s\t%s\t%s\n", r.figure, r.value, r.unit, budget, holds, r.note)
	}
	t.Flush()
	return over
}
