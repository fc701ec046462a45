package procfs

import (
	"time"

	"golang.org/x/sys/unix"
)

// Started is the wall time at which a process started, exact to a Tick. /proc counts from the
// boot; what that is on the wall is asked now, since the wall's clock may have been set since.
func Started(pid int) (time.Time, error) {
	s, err := StatOf(pid)
	if err != nil {
		return time.Time{}, err
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return time.Time{}, err
	}
	return time.Now().Add(time.Duration(s.Start - now.Nano())), nil
}
