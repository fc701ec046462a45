package kernels

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// measured are the kernels on which instructions are counted: those that many nodes have.
var measured = []kernel{
	{name: "6.1", image: "bookworm-amd64", lacks: []string{byFunctions}},
	{name: "6.12", image: "trixie-amd64"},
	{name: "newest", image: "sid-amd64", restless: 4000}, // a futex took 3,650 less the second time
	{name: "6.12, arm64", image: "trixie-arm64"},
}

// functions reports whether a kernel lets what plugins do be reached by its functions.
func (k kernel) functions() bool { return !slices.Contains(k.lacks, byFunctions) }

// The states of a probe, as vm calls them.
const (
	nothing      = "nothing"
	nothingAgain = "nothing again"
	beforeCalls  = "before"
	inACall      = "in a call"
	afterCalls   = "after"
	// bySystemCalls is in a call, where functions could have been taken and were not.
	bySystemCalls = "in a call, by system calls"
)

// costs are instructions: by state, then by loop, what one turn takes.
type costs map[string]map[string]float64

// added is what a loop takes more in a state than while there is no probe.
func (c costs) added(state, loop string) float64 { return c[state][loop] - c[nothing][loop] }

// counted reads what a machine counted.
func counted(t *testing.T, k kernel, console []byte) costs {
	t.Helper()
	c := costs{}
	for line := range strings.Lines(string(console)) {
		if said, is := strings.CutPrefix(strings.TrimSpace(line), "counted "); is {
			var one struct {
				State string
				Loops map[string]float64
			}
			if err := json.Unmarshal([]byte(said), &one); err != nil {
				t.Fatalf("%v in %q", err, line)
			}
			c[one.State] = one.Loops
		}
	}
	for _, state := range k.states() {
		if len(c[state]) == 0 {
			t.Fatalf("nothing was counted in state %q:\n%s", state, console)
		}
	}
	return c
}

// states are those that are measured on a kernel.
func (k kernel) states() []string {
	all := []string{nothing, nothingAgain, beforeCalls, inACall, afterCalls}
	if k.functions() {
		all = append(all, bySystemCalls)
	}
	return all
}

// bound is what a loop may take.
type bound struct {
	loop string
	// calls are its system calls.
	calls float64
	// noise is by how much two measurements of the same differ, in instructions: where threads wake one
	// another, or a list of free memory is filled.
	noise float64
	// Where functions are attached: reached is a loop that calls some of them in every state, and waits one whose
	// threads go to sleep.
	reached, waits bool
}

// perCall is how many instructions more a system call takes at most that sys_enter and sys_exit are attached to: on 6.12
// it was 354, on arm64 488, while waits were found by them, too.
func (k kernel) perCall() float64 {
	if k.arch() == "arm64" {
		return 560
	}
	return 480
}

// paid is what a system call paid on 6.12 while waits were found by system calls, too: those that call functions pay at
// most half of that, or of what it is today.
const paid = 354

// perSwitch is what it takes when a CPU goes on to another thread while a call is under way: 157 on 6.12.
const perSwitch = 300

// boots is how often a machine is booted at most, until each cost was as it should be in one of them.
const boots = 5

const (
	pipes   = "pipe, write and read"
	mapping = "mmap and munmap"
)

// bounds of all loops, in the order of the table. The least noise, 10, is a longer chain of a hash table: an
// empty program at a system call takes some 200.
var bounds = []bound{
	{loop: "getppid", calls: 1, noise: 1},
	{loop: "read of a file", calls: 1, noise: 10},
	{loop: "open and close", calls: 2, noise: 150},
	{loop: "stat", calls: 1, noise: 10},
	{loop: mapping, calls: 2, noise: 150},
	{loop: "sched_yield", calls: 1, noise: 10},
	{loop: "futex, woken by a thread", calls: 4, noise: 600, waits: true},
	{loop: "epoll, woken by a thread", calls: 5, noise: 600, waits: true},
	{loop: "thread switch, there and back", calls: 4, noise: 600, waits: true},
	{loop: "unix datagram, send and receive", calls: 2, noise: 10},
	{loop: "TCP, request and answer", calls: 4, noise: 200},
	// Its sockets come and go with what memory is free: +295 was counted where nothing is attached to what it calls.
	{loop: "unix connection, from connect to close", calls: 9, noise: 400, reached: true},
	{loop: "netlink, question and answer", calls: 2, noise: 10, reached: true},
	{loop: pipes, calls: 2, noise: 10, reached: true},
	{loop: "flock and unlock", calls: 2, noise: 10, reached: true},
}

// forkAndExec is the loop that pays in every state: each new program is looked at.
const forkAndExec = "fork, exec, exit and wait"

// Who has nothing to do with CNI pays, in instructions: while no call is open nothing for any system call, where
// functions are attached neither during one, but for what is reached by them.
func TestNobodyElsePaysWhileNoCallIsOpen(t *testing.T) {
	all := map[string]costs{}
	for _, k := range measured {
		k.options = "cniscope.count=1"
		t.Run(k.name, func(t *testing.T) {
			k.needed(t)
			var c costs
			var found map[string]string
			// What a program costs it costs in each boot; what else was in memory, mostly in one.
			for boot := range boots {
				c = counted(t, k, run(t, k, byInstructions...))
				now := c.faults(k)
				if boot > 0 {
					maps.DeleteFunc(now, func(what, _ string) bool { return found[what] == "" })
				}
				if found = now; len(found) == 0 {
					break
				}
				t.Logf("boot %d: %v", boot+1, slices.Collect(maps.Values(found)))
			}
			for _, fault := range found {
				t.Error(fault)
			}
			all[k.name] = c
		})
	}
	if len(all) == len(measured) && !t.Failed() {
		tell(t, all)
	}
}

// faults are the costs that are not as they should be, by loop and state.
func (c costs) faults(k kernel) map[string]string {
	found := map[string]string{}
	for _, b := range bounds {
		for _, state := range k.states()[1:] {
			least, most := c.within(k, b, state)
			if more := c.added(state, b.loop); more < least || more > most {
				found[b.loop+", "+state] = fmt.Sprintf("%s, %s: %+.1f instructions, want %+.0f to %+.0f", b.loop, state, more, least, most)
			}
		}
	}
	for _, state := range []string{beforeCalls, afterCalls} {
		if more, all := c.added(state, forkAndExec), c[nothing][forkAndExec]; more > 0.15*all {
			found[forkAndExec+", "+state] = fmt.Sprintf("%s, %s: %+.0f of %.0f", forkAndExec, state, more, all)
		}
	}
	return found
}

// share is how much of what system calls cost it a loop may take that calls functions.
func (b bound) share() float64 {
	if b.loop == pipes { // two programs, one of them at a return: their entry alone takes as much
		return 0.56
	}
	return 0.5
}

// within is what a loop may take more in a state.
func (c costs) within(k kernel, b bound, state string) (least, most float64) {
	if b.waits {
		b.noise = max(b.noise, k.restless)
	}
	if b.loop == mapping && k.arch() == "arm64" { // 153 was seen once
		b.noise = 200
	}
	least, most = -b.noise, b.noise
	switch {
	case state == nothingAgain:
	case state == bySystemCalls, state == inACall && !k.functions():
		return math.Inf(-1), k.perCall()*b.calls + b.noise
	case !k.functions():
	case b.reached:
		return least, b.share()*max(c.added(bySystemCalls, b.loop), paid*b.calls) + b.noise
	case b.waits && state == inACall:
		return math.Inf(-1), 2*perSwitch + b.noise
	}
	return least, most
}

// instructions is the table of docs/contributing/performance.md: a loop a line, a kernel a column, the states in a cell.
func instructions(all map[string]costs) string {
	var b strings.Builder
	b.WriteString("| instructions more: before / in / after a call (in one by system calls) |")
	for _, k := range measured {
		b.WriteString(" " + k.name + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(measured)) + "\n")
	for _, x := range append(slices.Clone(bounds), bound{loop: forkAndExec}) {
		b.WriteString("| " + x.loop + " |")
		for _, k := range measured {
			c, noise := all[k.name], x.noise
			if x.waits {
				noise = max(noise, k.restless)
			}
			cell := make([]string, 0, 3)
			for _, state := range []string{beforeCalls, inACall, afterCalls} {
				more := c.added(state, x.loop)
				if math.Abs(more) <= max(noise, 0.5) {
					cell = append(cell, "0")
				} else {
					cell = append(cell, fmt.Sprintf("%+.0f", more))
				}
			}
			b.WriteString(" " + strings.Join(cell, " / "))
			if k.functions() {
				fmt.Fprintf(&b, " (%s)", bracket(c.added(bySystemCalls, x.loop)))
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// bracket is what a loop takes more by system calls. Nothing takes less for them: that is noise.
func bracket(more float64) string {
	if math.Round(more) < 0 {
		return "noise"
	}
	return fmt.Sprintf("%+d", int(math.Round(more)))
}

func TestNobodyIsSaidToTakeLessBySystemCalls(t *testing.T) {
	for more, want := range map[float64]string{-2162: "noise", -0.3: "+0", 0: "+0", 354.2: "+354"} {
		if got := bracket(more); got != want {
			t.Errorf("%v: %s", more, got)
		}
	}
}

// tell logs the table, and with -update writes it. What compilers and kernels make of the same programs
// differs by some instructions, so the page need not be the same; but it has the same lines.
func tell(t *testing.T, all map[string]costs) {
	t.Helper()
	const performance = "../../docs/contributing/performance.md"
	now := instructions(all)
	t.Logf("\n%s", now)
	was, err := os.ReadFile(performance)
	harness.Check(t, err)
	tables := regexp.MustCompile(`(?m)^\| instructions more.*\n(\|.*\n)+`)
	if *update {
		harness.Check(t, os.WriteFile(performance, tables.ReplaceAllLiteral(was, []byte(now)), 0o644))
		return
	}
	lines := func(table string) (first []string) {
		for line := range strings.Lines(table) {
			cells := strings.Split(line, "|")
			first = append(first, cells[min(1, len(cells)-1)])
		}
		return first
	}
	if !slices.Equal(lines(string(tables.Find(was))), lines(now)) {
		t.Errorf("docs/contributing/performance.md has other lines; run go test ./test/kernels -update\n%v", slices.Collect(maps.Keys(all)))
	}
}
