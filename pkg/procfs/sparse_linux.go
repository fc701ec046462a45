package procfs

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// MapSparsely has the kernel map only those pages of this program's own file that are used, until the program ends. By
// default it maps 64 KiB around each of them, as of every file, of which two thirds are never looked at.
//
// There is no call that says so. But memory that a userfaultfd tracks is mapped page by page (mm/memory.c,
// should_fault_around), also where nothing is ever protected and nobody told: UFFD_FEATURE_WP_ASYNC, of Linux 6.7. It
// fails on earlier kernels, and where the system call is forbidden, as container runtimes do by default; then nothing is
// different.
func MapSparsely() error {
	program, err := programRanges()
	if err != nil {
		return err
	}
	return mapSparsely(program)
}

// mapSparsely does so for these mappings. Its descriptor stays open, since that is how long it holds.
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

// Of include/uapi/linux/userfaultfd.h.
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
		register := struct{ start, length, mode, ioctls uint64 }{start: uint64(r.start), length: uint64(r.end - r.start), mode: uffdRegisterModeWP}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, uffdioRegister, uintptr(unsafe.Pointer(&register))); errno != 0 {
			return fmt.Errorf("ioctl UFFDIO_REGISTER of %x-%x: %w", r.start, r.end, errno)
		}
	}
	return nil
}
