package kernels

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

// Attaching and detaching a probe to busy functions, half of the time by SIGKILL, hangs no kernel.
func TestProbesStartAndStopUnderLoad(t *testing.T) {
	times, err := strconv.Atoi(os.Getenv("CNISCOPE_STARTS"))
	if err != nil {
		t.Skip("make test-starts runs it")
	}
	begun, err := strconv.Atoi(os.Getenv("CNISCOPE_WHOLE"))
	if err != nil || begun < 1 { // later ones attach what a whole one loaded
		t.Fatalf("CNISCOPE_WHOLE is %q: a number above 0 is wanted", os.Getenv("CNISCOPE_WHOLE"))
	}
	for _, name := range []string{"5.10", "6.1", "6.12", "newest", "6.12, arm64"} {
		t.Run(name, func(t *testing.T) {
			k := named(name)
			k.options = fmt.Sprintf("cniscope.starts=%d cniscope.whole=%d", times, begun)
			k.longer = time.Duration(times+begun) * time.Minute
			r := boot(t, k)
			whole, attached := endings(r.said["started"]), endings(r.said["attached"])
			if len(whole) != begun || len(attached) != times {
				t.Fatalf("%d of %d starts and %d of %d came to an end:\n%s", len(whole), begun, len(attached), times, r.console)
			}
			for _, e := range whole {
				harness.Equal(t, (e.of == "functions"), k.functions(), "it was attached by", e.of)
			}
			for _, how := range []string{"closed", "killed"} {
				t.Logf("%s, by %s, from the beginning: %s", r.release, whole[0].of, spread(whole, how))
				t.Logf("%s programs attached: %s", attached[0].of, spread(attached, how))
			}
		})
	}
}

type ending struct {
	of, how        string // the way, or the number of attached programs
	attach, detach int
}

func endings(lines []string) (all []ending) {
	for _, line := range lines {
		var e ending
		if n, _ := fmt.Sscan(line, &e.of, &e.attach, &e.how, &e.detach); n == 4 {
			all = append(all, e)
		}
	}
	return all
}

func spread(all []ending, how string) string {
	var attach, detach []int
	for _, e := range all {
		if e.how == how {
			attach, detach = append(attach, e.attach), append(detach, e.detach)
		}
	}
	if len(attach) == 0 {
		return how + " never"
	}
	slices.Sort(attach)
	slices.Sort(detach)
	last := len(attach) - 1
	return fmt.Sprintf("%s %d times: attached in %v, at most %v; gone after %v, at most %v",
		how, len(attach), micro(attach[last/2]), micro(attach[last]), micro(detach[last/2]), micro(detach[last]))
}

func micro(n int) time.Duration {
	return (time.Duration(n) * time.Microsecond).Round(100 * time.Microsecond)
}
