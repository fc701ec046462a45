package procfs

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ReleaseProgram drops the unmodified pages of this program's file, most of which only the start needs. Needed ones
// return from the page cache.
func ReleaseProgram() error {
	ranges, err := programRanges()
	if err != nil {
		return err
	}
	for _, r := range ranges {
		// unix.Madvise requires Go memory.
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, r.start, r.end-r.start, unix.MADV_DONTNEED); errno != 0 {
			err = errors.Join(err, fmt.Errorf("madvise of %x-%x: %w", r.start, r.end, errno))
		}
	}
	return err
}

func programRanges() ([]addresses, error) {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return nil, err
	}
	return cleanRanges(smaps, program), nil
}

type addresses struct{ start, end uintptr }

// cleanRanges omits writable or modified mappings: relocations, read-only later, would be lost. Anonymous counts
// modified pages in memory, Swap on disk (proc(5), smaps).
func cleanRanges(smaps []byte, file string) (clean []addresses) {
	var candidate bool
	lines := bufio.NewScanner(bytes.NewReader(smaps))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		var r addresses
		switch {
		case len(fields) < 2:
		case strings.HasSuffix(fields[0], ":"):
			if (fields[0] == "Anonymous:" || fields[0] == "Swap:") && candidate && fields[1] != "0" {
				clean, candidate = clean[:len(clean)-1], false
			}
		default:
			n, err := fmt.Sscanf(fields[0], "%x-%x", &r.start, &r.end)
			candidate = n == 2 && err == nil && len(fields) > 5 && fields[5] == file && strings.HasPrefix(fields[1], "r-")
			if candidate {
				clean = append(clean, r)
			}
		}
	}
	return clean
}

// Entry returns a 64-bit program's start address (AT_ENTRY).
func Entry(pid int) (uint64, error) {
	const atEntry, most = 9, 4 << 10
	raw, err := readMost(path(pid, "auxv"), most)
	for ; len(raw) >= 16; raw = raw[16:] {
		if binary.NativeEndian.Uint64(raw) == atEntry {
			return binary.NativeEndian.Uint64(raw[8:]), nil
		}
	}
	return 0, cmp.Or(err, os.ErrNotExist)
}

// MapSparsely makes the kernel map only used pages of this program's file, not 64 KiB around each.
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
