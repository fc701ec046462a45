package clock

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

// tellClocks in the environment makes this program print its clocks.
const tellClocks = "CLOCK_TEST_TELL"

func TestMain(m *testing.M) {
	if os.Getenv(tellClocks) != "" {
		fmt.Println(Monotonic(), Boot(), Shift(), CheckNamespace(10*time.Millisecond))
		return
	}
	os.Exit(m.Run())
}

func TestTimeNamespaces(t *testing.T) {
	harness.Root(t)
	if _, err := os.Stat("/proc/self/timens_offsets"); err != nil {
		t.Skip("needs Linux 5.6 with time namespaces")
	}
	uptime := Boot() / 1e9
	for _, args := range []string{
		"", "-T --monotonic 500000 --boottime 1000000", "-T --boottime 1000000", "-T --monotonic 500000",
		fmt.Sprintf("-T --monotonic -%d --boottime -%d", uptime/2, uptime/3), "-T", "-T --fork --monotonic 77 --boottime 7",
	} {
		t.Run(args, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), "unshare", append(strings.Fields(args), os.Args[0])...)
			c.Env = append(os.Environ(), tellClocks+"=1")
			before := [2]int64{Monotonic(), Boot()}
			said, err := c.CombinedOutput()
			after := [2]int64{Monotonic(), Boot()}
			if err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			var got [2]int64
			var shift int64
			var failed string
			if _, err := fmt.Sscan(string(said), &got[0], &got[1], &shift, &failed); err != nil || failed != "<nil>" {
				t.Fatalf("%v: %s", err, said)
			}
			for i, name := range []string{"monotonic", "boot"} {
				if got[i] < before[i] || got[i] > after[i] {
					t.Errorf("the %s clock is %d, want %d to %d", name, got[i], before[i], after[i])
				}
			}
		})
	}
}

func TestOffsetsOfATimeNamespace(t *testing.T) {
	for text, want := range map[string]offsets{
		"monotonic           0         0\nboottime            0         0\n": {},
		"monotonic 500000 0\nboottime 1000000 20000000\n":                    {500000e9, 1000000e9 + 20e6},
		"monotonic -3 999999999\nboottime -1 0\n":                            {-2e9 - 1, -1e9},
		"boottime 7 0\nrealtime 8 0\nmonotonic\nmonotonic x 0\n":             {0, 7e9},
		"": {},
	} {
		harness.Equal(t, parseOffsets([]byte(text)), want, text)
	}
}

func TestAnOffsetThatTicksDoNotTell(t *testing.T) {
	for boot, ok := range map[int64]bool{
		0: true, 7e9: true, -7e9: true, 10e6: true, 5e6: false, 7e9 + 1: false,
		-1: false,
	} {
		if err := (offsets{boot: boot, mono: 1}).check(10 * time.Millisecond); (err == nil) != ok {
			t.Errorf("an offset of %d ns: %v", boot, err)
		}
	}
}
