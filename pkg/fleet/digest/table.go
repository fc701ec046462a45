package digest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/text"
)

const tableMost = 10

// Table writes up to ten rows. worst adds the worst operation and remedy below each.
func Table[R any](out *strings.Builder, head []string, rows []R, cells func(R) []string, worst func(R) control.Line) {
	shown := rows[:min(len(rows), tableMost)]
	var lines strings.Builder
	w := tabwriter.NewWriter(&lines, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(head, "\t"))
	for _, r := range shown {
		fmt.Fprintln(w, strings.Join(cells(r), "\t"))
	}
	_ = w.Flush() // memory writes do not fail
	out.WriteByte('\n')
	for i, line := range strings.SplitAfter(lines.String(), "\n") {
		out.WriteString(line)
		if worst != nil && i > 0 && i <= len(shown) {
			Explain(out, "", worst(shown[i-1]))
		}
	}
	if more := len(rows) - len(shown); more > 0 {
		fmt.Fprintf(out, "… and %d more (--format json has all)\n", more)
	}
}

// Explain writes what was wrong and the remedy.
func Explain(out *strings.Builder, indent string, l control.Line) {
	if says := cmp.Or(l.Verdict, l.Error); says != "" && l.Result != control.Ordinary {
		fmt.Fprintf(out, "%s    %s\n", indent, says)
	}
	if l.Remedy != "" {
		out.WriteString(text.Steps(indent+"  ", l.Remedy))
	}
}

// listMost bounds a list; a node holds about 10,000 operations.
const listMost = 12_000

// List is bounded: a hostile node can send a million {}.
type List[T any] []T

// UnmarshalJSON rejects a long list before allocation.
func (l *List[T]) UnmarshalJSON(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	switch begin, err := d.Token(); {
	case err != nil:
		return err
	case begin == nil: // null
		*l = nil
		return nil
	case begin != json.Delim('['):
		return fmt.Errorf("%v in place of a list", begin)
	}
	*l = List[T]{}
	for d.More() {
		if len(*l) >= listMost {
			return fmt.Errorf("a list of more than %s", Number(listMost))
		}
		var one T
		if err := d.Decode(&one); err != nil {
			return err
		}
		*l = append(*l, one)
	}
	return nil
}
