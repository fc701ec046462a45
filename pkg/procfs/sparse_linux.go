package procfs

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// MapSparsely makes the kernel map only used pages of this program's file, not 64 KiB around each, of
// which two thirds are unused.
//
// The kernel maps userfaultfd memory page by page (mm/memory.c, should_fault_around): UFFD_FEATURE_WP_ASYNC, Linux 6.7.
// Earlier, and where userfaultfd is forbidden, as in containers by default, it fails without effect.
func MapSparsely() error {
	program, err := programRanges()
	if err != nil {
		return err
	}
	return mapSparsely(program)
}

// mapSparsely leaves the descriptor open: closing ends the effect.
func mapSparsely(ranges []addresses) error {
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|uffdUserModeOnly, 0, 0)
	if errno != 0 {
		return fmt.Errorf("userfaultfd: %w", errno)
	}
	if err := track(fd, ranges); err != nil {
		return errors.Join(err, unix.Close(int(fd)))
	}
	return nil
}

// include/uapi/linux/userfaultfd.h
const (
	uffdUserModeOnly   = 1 // needs no capability
	uffdAPI            = 0xaa
	uffdFeatureWPAsync = 1 << 15
	uffdRegisterModeWP = 1 << 1
	uffdioAPI          = 0xc018aa3f
	uffdioRegister     = 0xc020aa00
)

func track(fd uintptr, ranges []addresses) error {
	api := struct{ api, features, ioctls uint64 }{api: uffdAPI, features: uffdFeatureWPAsync}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, uffdioAPI, uintptr(unsafe.Pointer(&api))); errno != 0 {
		return fmt.Errorf("ioctl UFFDIO_API: %w", errno)
	}
	for _, r := range ranges {
		register := struct{ start, length, mode, ioctls uint64 }{
			start: uint64(r.start), length: uint64(r.end - r.start),
			mode: uffdRegisterModeWP,
		}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, uffdioRegister, uintptr(unsafe.Pointer(&register))); errno != 0 {
			return fmt.Errorf("ioctl UFFDIO_REGISTER of %x-%x: %w", r.start, r.end, errno)
		}
	}
	return nil
}
