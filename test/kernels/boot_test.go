package kernels

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

// machine is how an architecture is emulated.
type machine struct {
	program string
	options []string
	console string
	// kernel is what its kernels are told besides.
	kernel string
}

// Emulated also where KVM could be had, so that it runs the same everywhere.
var machines = map[string]machine{
	// QEMU 7.2's cmpxchg16b leaves wrong flags, and Linux breaks in kmalloc.
	// Linux counts whether its timer ticks, in a loop as long as it takes a real CPU, and panics if it does not:
	// on a busy host QEMU is given too little of one meanwhile.
	"amd64": {"qemu-system-x86_64", []string{"-cpu", "max,cx16=off"}, "ttyS0", "no_timer_check"},
	// The architecture's own pointer authentication takes most of the time when emulated.
	"arm64": {"qemu-system-aarch64", []string{"-M", "virt", "-cpu", "max,pauth-impdef=on"}, "ttyAMA0", ""},
}

// byInstructions has the emulator make one nanosecond of each instruction, and skip the time in which nothing runs.
// What happens in the machine then does not depend on how fast the host is and what else it does: times that are over
// in it, and the CPU that its kernel takes from somebody, come after so many instructions. With a second CPU Linux 5.10
// and 6.1 wait for it for ever (QEMU 7.2).
var byInstructions = []string{"-icount", "shift=0,sleep=off", "-smp", "1"}

// patience is some ten times what a machine takes on two cores. The machine's own is counted in its instructions, and
// is over before, unless the kernel itself hangs.
const patience = 15 * time.Minute

// feature is a line of the machine's report, as vm writes it.
type feature struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// reported is what a machine said.
type reported struct {
	kernel   kernel
	release  string
	features []feature
	// missed are the BPF programs that the kernel did not run when it should have.
	missed []string
}

// boot runs a machine until it powers itself off, and takes its report.
func boot(t *testing.T, k kernel) reported {
	t.Helper()
	console := run(t, k, byInstructions...)
	r, complete := read(t, console)
	if !complete {
		t.Fatalf("the machine did not say all it should:\n%s", console)
	}
	r.kernel = k
	if len(r.missed) > 0 {
		t.Logf("not run when they should have been: %q", r.missed)
	}
	return r
}

// run runs a machine until it powers itself off, and returns what is on its console.
func run(t *testing.T, k kernel, more ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(harness.Context(t), patience+k.longer)
	defer cancel()
	m := machines[k.arch()]
	args := append([]string{
		// One thread for both CPUs: with two, a CPU may run what Linux has changed in its
		// own code a moment ago, and Linux crashes (QEMU 7.2).
		"-accel", "tcg,thread=single", "-m", "512",
		"-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot",
		"-kernel", k.file(), "-initrd", initramfs(t, k.arch(), k.programs),
		"-append", "panic=-1 quiet loglevel=1 console=" + m.console + " " + m.kernel + " " + k.options,
	}, slices.Concat(m.options, more)...)
	began := time.Now()
	console, err := exec.CommandContext(ctx, m.program, args...).CombinedOutput()
	t.Logf("took %.1f s", time.Since(began).Seconds())
	if err != nil {
		t.Fatalf("%v\n%s", err, console)
	}
	return console
}

// needed skips a test of a kernel that was not fetched, or cannot be emulated here.
func (k kernel) needed(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(k.file()); err != nil {
		t.Skip(err, "; make test-kernels fetches it")
	}
	if _, err := exec.LookPath(machines[k.arch()].program); err != nil {
		t.Skip(err, "; make test-kernels installs it")
	}
}

// read finds the report among what else is on the console.
func read(t *testing.T, console []byte) (r reported, complete bool) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(console))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		kind, rest, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		switch kind {
		case "kernel":
			r.release = rest
		case "feature":
			var f feature
			if err := json.Unmarshal([]byte(rest), &f); err != nil {
				t.Fatalf("%v in %q", err, rest)
			}
			r.features = append(r.features, f)
		case "missed":
			r.missed = append(r.missed, rest)
		case "end":
			complete = true
		}
	}
	return r, complete
}
