package probe

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sleepers use system calls of older programs, and of C, that Go does not make.
var sleepers = map[string]func() error{
	"select": func() error {
		left := unix.NsecToTimeval(int64(slept))
		_, _, errno := unix.Syscall6(unix.SYS_SELECT, 0, 0, 0, 0, uintptr(unsafe.Pointer(&left)), 0)
		return unless(0, errno)
	},
	"futex until a time": func() error { // sem_clockwait
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
			return err
		}
		const waitBitset, private, everybody = 9, 128, 0xffffffff
		until, word := unix.NsecToTimespec(now.Nano()+int64(slept)), uint32(0)
		_, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&word)), waitBitset|private, 0, uintptr(unsafe.Pointer(&until)), 0, everybody)
		return unless(unix.ETIMEDOUT, errno)
	},
}

func init() {
	acts["doze"] = func(name string) error { return sleepers[name]() }
}

func unless(expected, errno unix.Errno) error {
	if errno == expected {
		return nil
	}
	return errno
}

func TestEverySleepIsOne(t *testing.T) {
	for name := range sleepers {
		t.Run(name, func(t *testing.T) {
			sleeps(t, acting(t, "doze", name))
		})
	}
}
