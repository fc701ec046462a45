//go:build !windows

package record

import (
	"os"
	"strings"
)

// kernel is its release, bootID what it calls this run of its own; empty where there is no /proc.
func kernel() string { return sysctl("osrelease") }

func bootID() string { return sysctl("random/boot_id") }

func sysctl(name string) string {
	value, _ := os.ReadFile("/proc/sys/kernel/" + name)
	return strings.TrimSpace(string(value))
}
