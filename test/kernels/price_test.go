package kernels

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// watched is the cost of BPF programs for a pod's plugins, by name: instructions and runs.
type watched map[string]struct {
	Runs        int
	Took, Empty int
}

// took subtracts the statistics' own cost.
func (w watched) took() (all int) {
	for _, p := range w {
		all += p.Took - p.Empty
	}
	return all
}

// budget bounds the instructions for a pod's runs. The program's are 5 % above the highest of three counts, which
// differed by 3 %.
type budget struct{ functions, calls, program int }

var budgets = map[string]budget{"6.12": {functions: 1_206_000, calls: 2_787_000, program: 32_600_000}}

// With functions a pod's plugins cost up to half of the instructions that system calls cost. BPF programs and cniscope
// stay within their budgets.
func TestInstructionsForAPodAreWithinTheBudget(t *testing.T) {
	for _, name := range []string{"6.12", "newest"} {
		t.Run(name, func(t *testing.T) {
			k := named(name)
			k.needed(t)
			k.options, k.programs = "cniscope.price=1", map[string]string{"pod": "./pod"}
			console := run(t, k, byInstructions...)
			r, complete := read(t, console)
			ways, program := map[string]watched{}, 0
			for line := range strings.Lines(string(console)) {
				if said, is := strings.CutPrefix(strings.TrimSpace(line), "program "); is {
					program = harness.Must(strconv.Atoi(said))(t)
				}
				if said, is := strings.CutPrefix(strings.TrimSpace(line), "priced "); is {
					var one struct {
						Way      string
						Programs watched
					}
					if err := json.Unmarshal([]byte(said), &one); err != nil {
						t.Fatalf("%v in %q", err, line)
					}
					ways[one.Way] = one.Programs
				}
			}
			functions, calls := ways["functions"].took(), ways["system-calls"].took()
			if !complete || functions <= 0 || calls <= 0 {
				t.Fatalf("the machine did not say all it should:\n%s", console)
			}
			share := float64(functions) / float64(calls)
			t.Logf("%s: %d instructions by functions, %d by system calls: %.2f\n%s", r.release, functions, calls, share, prices(ways))
			if share > 0.5 {
				t.Errorf("functions take %.2f of what system calls take", share)
			}
			got, most := budget{functions, calls, program}, budgets[name]
			t.Logf("a pod takes %+v, budget %+v", got, most)
			if most != (budget{}) && (functions > most.functions || calls > most.calls || program > most.program) {
				t.Errorf("a pod takes more than its budget")
			}
		})
	}
}

// prices returns a line per program.
func prices(ways map[string]watched) string {
	var b strings.Builder
	for _, way := range slices.Sorted(maps.Keys(ways)) {
		for _, name := range slices.Sorted(maps.Keys(ways[way])) {
			if p := ways[way][name]; p.Runs > 0 {
				fmt.Fprintf(&b, "%-12s %-15s %6d runs, %8d instructions, %6.0f each\n", way, name, p.Runs, p.Took-p.Empty, float64(p.Took-p.Empty)/float64(p.Runs))
			}
		}
	}
	return b.String()
}
