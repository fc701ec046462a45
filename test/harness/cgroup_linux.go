package harness

import (
	"os"
	"strings"
	"testing"
)

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
