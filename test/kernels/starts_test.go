package kernels

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A probe is started and stopped again and again while others are in the functions that it is attached to, every other
// one by SIGKILL, and no kernel hangs: one that did would not come to its end before the machine's patience is over.
// The machine's time is instructions, so what is told does not depend on how busy the host is.
func TestProbesStartAndStopUnderLoad(t *testing.T) {
	times, err := strconv.Atoi(os.Getenv("CNISCOPE_STARTS"))
	if err != nil {
		t.Skip("make test-starts runs it")
	}
	for _, name := range []string{"5.10", "6.1", "6.12", "newest"} {
		t.Run(name, func(t *testing.T) {
			k := named(name)
			k.needed(t)
			k.options, k.longer = fmt.Sprintf("cniscope.starts=%d", times), time.Duration(times)*time.Minute
			console := run(t, k, counting...)
			r, complete := read(t, console)
			ends := endsOf(string(console))
			if !complete || len(ends) != times {
				t.Fatalf("%d of %d starts came to an end:\n%s", len(ends), times, console)
			}
			for _, e := range ends {
				if (e.way == "functions") != k.functions() {
					t.Errorf("it was attached by %s", e.way)
				}
			}
			t.Logf("%s, by %s: %s", r.release, ends[0].way, ends)
		})
	}
}

// ending is a probe that was started and stopped, in milliseconds of the machine.
type ending struct {
	way, how       string
	attach, detach int
}

func (e ending) String() string {
	return fmt.Sprintf("attached after %d ms, %s in %d ms;", e.attach, e.how, e.detach)
}

func endsOf(console string) (all []ending) {
	for line := range strings.Lines(console) {
		var e ending
		if n, _ := fmt.Sscanf(strings.TrimSpace(line), "started %s %d %s %d", &e.way, &e.attach, &e.how, &e.detach); n == 4 {
			all = append(all, e)
		}
	}
	return all
}
