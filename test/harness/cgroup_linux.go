package harness

import (
	"os"
	"strings"
	"testing"
)

// FirstPIDs reports whether this PID namespace is the kernel's first, so that /proc shows the kernel's PIDs.
func FirstPIDs() bool {
	const first = "pid:[4026531836]" // PROC_PID_INIT_INO, include/linux/proc_ns.h
	ns, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && ns == first
}

// Unified is where cgroup v2 is mounted; without it the test is skipped.
func Unified(t testing.TB) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	Check(t, err)
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); f[2] == "cgroup2" {
			return f[1]
		}
	}
	t.Skip("no cgroup v2 is mounted")
	return ""
}
