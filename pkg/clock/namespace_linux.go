package clock

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// offsets are the ns that this process's time namespace adds to the node's clocks (time_namespaces(7)). Events of the
// kernel do not have them.
type offsets struct{ mono, boot int64 }

var ours = ownOffsets()

// ownOffsets reads the offsets of the process's time namespace. The file has those of its children: if they are in
// another namespace, the process is in the initial one, unless namespaces are nested.
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
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) // cannot fail with a valid clock and pointer
	return ts.Nano() - ours.boot
}

// Suspended returns how long the node was suspended since it started, in ns: only Boot counts that time.
func Suspended() int64 { return Boot() - Monotonic() }

// Shift returns by how many ns times in /proc are ahead of Boot in this process's time namespace.
func Shift() int64 { return ours.boot }

// CheckNamespace fails if the boottime offset is not a multiple of tick. /proc rounds start times to ticks after
// adding the offset, so they would be inexact.
func CheckNamespace(tick time.Duration) error { return ours.check(tick) }

func (o offsets) check(tick time.Duration) error {
	if o.boot%int64(tick) == 0 {
		return nil
	}
	return fmt.Errorf("the boottime offset of this time namespace, %d ns, is not a multiple of %s; run cniscope in the node's: %s",
		o.boot, tick, "nsenter --time=/proc/1/ns/time")
}
