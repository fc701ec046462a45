package clock

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// offsets are our time namespace's lead over the node's clocks in ns (time_namespaces(7)), which kernel events lack.
type offsets struct{ mono, boot int64 }

var ours = ownOffsets()

// ownOffsets reads the children's namespace. If that differs, we are in the initial one, unless nested.
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

// Suspended returns ns of suspension since the start.
func Suspended() int64 { return Boot() - Monotonic() }

// Shift returns the ns by which our /proc's times lead Boot.
func Shift() int64 { return ours.boot }

// CheckNamespace fails if the boottime offset is no multiple of tick: /proc rounds after adding it.
func CheckNamespace(tick time.Duration) error { return ours.check(tick) }

func (o offsets) check(tick time.Duration) error {
	if o.boot%int64(tick) == 0 {
		return nil
	}
	return fmt.Errorf("the boottime offset of this time namespace, %d ns, is not a multiple of %s; "+
		"run cniscope in the node's: nsenter --time=/proc/1/ns/time", o.boot, tick)
}
