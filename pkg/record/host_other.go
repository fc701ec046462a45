//go:build !windows

package record

import (
	"os"
	"strings"
)

func kernel() string { return sysctl("osrelease") }

func bootID() string { return sysctl("random/boot_id") }

func sysctl(name string) string {
	value, _ := os.ReadFile("/proc/sys/kernel/" + name)
	return strings.TrimSpace(string(value))
}
