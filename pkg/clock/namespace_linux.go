package clock

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// offsets are what this process's time namespace adds to the node's clocks, in ns (time_namespaces(7)). The kernel's
// events and other processes' times do not have them.
type offsets struct{ mono, boot int64 }

var ours = ownOffsets()

// ownOffsets reads the offsets of the namespace that the process is in. The file has those of its children; where they
// are in another one, the process is in the initial one, unless namespaces are nested.
func ownOffsets() offsets {
	own, _ := os.Readlink("/proc/self/ns/time")
	children, _ := os.Readlink("/proc/self/ns/time_for_children")
	text, err := os.ReadFile("/proc/self/timens_offsets") // Linux 5.6 and later
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

// Boot returns the nanoseconds since the node started: its CLOCK_BOOTTIME, whatever time namespace this process is in.
func Boot() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) // it fails for no clock that there is
	return ts.Nano() - ours.boot
}

// Suspended returns how long the node was suspended since it started, in ns: Boot counts that, Monotonic does not.
func Suspended() int64 { return Boot() - Monotonic() }

// Shift returns what the times in /proc are ahead of Boot in this process's time namespace, in ns.
func Shift() int64 { return ours.boot }

// CheckNamespace fails in a time namespace in which the start of a process cannot be told exactly: /proc has it in
// ticks, which the kernel counts after it has added the offset.
func CheckNamespace(tick time.Duration) error { return ours.check(tick) }

func (o offsets) check(tick time.Duration) error {
	if o.boot%int64(tick) == 0 {
		return nil
	}
	return fmt.Errorf("the boottime offset of this time namespace, %d ns, is not a multiple of %s; run cniscope in the node's: %s",
		o.boot, tick, "nsenter --time=/proc/1/ns/time")
}
