package kernels

import (
	"os"
	"strings"
	"testing"
)

// A preempted BPF program is not run for others on that CPU: the count and doctor report it.
func TestProgramsThatWereNotRunAreCounted(t *testing.T) {
	if os.Getenv("CNISCOPE_ROUNDS") == "" {
		t.Skip("make test-ways runs it")
	}
	k := named("6.12")
	k.options = "preempt=full cniscope.misses=1"
	r := boot(t, k)
	if len(r.missed) != 1 || !strings.Contains(r.missed[0], "cniscope_bpf_program_missed_total{program=") {
		t.Fatalf("no metric told of it:\n%s", r.console)
	}
	if len(r.said["doctor"]) == 0 {
		t.Errorf("doctor did not tell of it:\n%s", r.console)
	}
	t.Logf("%s: %s", r.release, r.missed[0])
}
