package kernels

import (
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

type machine struct {
	program string
	options []string
	console string
	kernel  string
}

// Always emulated, even with KVM, for equal behavior everywhere.
var machines = map[string]machine{
	// QEMU 7.2's cmpxchg16b sets wrong flags, which breaks kmalloc. Linux checks its timer in a busy loop and
	// panics if a busy host delays QEMU.
	"amd64": {"qemu-system-x86_64", []string{"-cpu", "max,cx16=off"}, "ttyS0", "no_timer_check"},
	// The architecture's pointer authentication is slow to emulate.
	"arm64": {"qemu-system-aarch64", []string{"-M", "virt", "-cpu", "max,pauth-impdef=on"}, "ttyAMA0", ""},
}

// byInstructions makes one nanosecond of each instruction and skips idle time, so that behavior does not depend on
// the host. With a second CPU Linux 5.10 and 6.1 hang (QEMU 7.2).
var byInstructions = []string{"-icount", "shift=0,sleep=off", "-smp", "1"}

// patience is about ten times a machine's duration on two cores. The machine has its own timeout in instructions,
// unless its kernel hangs.
const patience = 15 * time.Minute

type feature struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

type reported struct {
	kernel   kernel
	release  string
	features []feature
	missed   []string
	said     map[string][]string // what follows a line's first word
	console  []byte
}

// boot runs a machine to its end, byInstructions or by other options.
func boot(t *testing.T, k kernel, options ...string) reported {
	t.Helper()
	k.needed(t)
	if options == nil {
		options = byInstructions
	}
	r := reported{kernel: k, console: run(t, k, options...), said: map[string][]string{}}
	for line := range strings.Lines(string(r.console)) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		r.said[kind] = append(r.said[kind], rest)
	}
	if len(r.said["kernel"]) == 0 || len(r.said["end"]) == 0 {
		t.Fatalf("the machine did not say all it should:\n%s", r.console)
	}
	r.release, r.missed, r.features = r.said["kernel"][0], r.said["missed"], decoded[feature](t, r.said["feature"])
	if len(r.missed) > 0 {
		t.Logf("not run when they should have been: %q", r.missed)
	}
	return r
}

func decoded[T any](t *testing.T, lines []string) (all []T) {
	t.Helper()
	for _, line := range lines {
		var one T
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		all = append(all, one)
	}
	return all
}

func run(t *testing.T, k kernel, more ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(harness.Context(t), patience+k.longer)
	defer cancel()
	m := machines[k.arch()]
	args := append([]string{
		// One thread for both CPUs: with two, Linux's self-modifying code crashes it (QEMU 7.2).
		"-accel", "tcg,thread=single", "-m", "512",
		"-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot",
		"-kernel", k.file(), "-initrd", initramfs(t, k),
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

// needed skips a kernel that was not fetched or cannot be emulated.
func (k kernel) needed(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(k.file()); err != nil {
		t.Skip(err, "; make test-kernels fetches it")
	}
	if _, err := exec.LookPath(machines[k.arch()].program); err != nil {
		t.Skip(err, "; make test-kernels installs it")
	}
}
