package record

import (
	"os"
	"runtime"
	"strings"

	"github.com/cniscope/cniscope/pkg/clock"
)

// Host returns a header with this machine's kernel, boot, architecture and clocks. What cannot be read
// stays empty: kernel and boot where there is no /proc.
func Host() Header {
	h := Header{Kernel: sysctl("osrelease"), BootID: sysctl("random/boot_id"), Arch: runtime.GOARCH}
	h.Clock.Mono, h.Clock.Wall = clock.Anchor()
	return h
}

func sysctl(name string) string {
	value, _ := os.ReadFile("/proc/sys/kernel/" + name)
	return strings.TrimSpace(string(value))
}
