package clock

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// In ns; this process's time namespace adds them to the node's clocks (time_namespaces(7)), not to the kernel's events.
type offsets struct{ mono, boot int64 }

var ours = ownOffsets()

// The children's. If theirs is another namespace, the process is in the initial one, unless namespaces are nested.
func ownOffsets() offsets {
	own, _ := os.Readlink("/proc/self/ns/time")
	children, _ := os.Readlink("/proc/self/ns/time_for_children")
	text, err := os.ReadFile("/proc/self/timens_offsets") // since Linux 5.6
	if err != nil || own != children {
		return offsets{}
	}
	return parseOffsets(text)
}

func parseOffsets(text []byte) (o offsets) {
	for line := range bytes.Lines(text) {
		var name string
		var seconds, ns int64
		if _, err := fmt.Sscan(string(line), &name, &seconds, &ns); err != nil {
			continue
		}
		switch name {
		case "monotonic":
			o.mono = seconds*1e9 + ns
		case "boottime":
			o.boot = seconds*1e9 + ns
		}
	}
	return o
}

// Boot returns the node's CLOCK_BOOTTIME in ns, in any time namespace.
func Boot() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return ts.Nano() - ours.boot
}

// Suspended returns the node's suspended time in ns.
func Suspended() int64 { return Boot() - Monotonic() }

// Shift returns by how many ns times in /proc are ahead of Boot.
func Shift() int64 { return ours.boot }

// CheckNamespace fails if the boottime offset is no multiple of tick, to which /proc rounds afterwards.
func CheckNamespace(tick time.Duration) error { return ours.check(tick) }

func (o offsets) check(tick time.Duration) error {
	if o.boot%int64(tick) == 0 {
		return nil
	}
	return fmt.Errorf("the boottime offset of this time namespace, %d ns, is not a multiple of %s; "+
		"run cniscope in the node's: nsenter --time=/proc/1/ns/time", o.boot, tick)
}
