package procfs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ReleaseProgram takes what is mapped of this program's own file out of its memory, but for what it has written to.
// Most of it was only needed to start, or is what the kernel mapped around that (MapSparsely); what is needed again is
// mapped again, from the page cache.
func ReleaseProgram() error {
	ranges, err := programRanges()
	if err != nil {
		return err
	}
	for _, r := range ranges {
		// unix.Madvise wants a slice, and this is not Go's memory.
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, r.start, r.end-r.start, unix.MADV_DONTNEED); errno != 0 {
			err = errors.Join(err, fmt.Errorf("madvise of %x-%x: %w", r.start, r.end, errno))
		}
	}
	return err
}

// programRanges are the mappings of this program's own file that it never writes to.
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

// addresses are a range of a process's own.
type addresses struct{ start, end uintptr }

// cleanRanges are the mappings of a file that can neither be written to nor hold a page that was: what a linker
// relocates at the start is read-only later, and lost if it is dropped (proc(5), smaps). Anonymous counts such pages in
// memory, Swap those on disk.
func cleanRanges(smaps []byte, file string) (clean []addresses) {
	var candidate bool
	lines := bufio.NewScanner(bytes.NewReader(smaps))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		var r addresses
		switch {
		case len(fields) < 2:
		case strings.HasSuffix(fields[0], ":"): // of the mapping before
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
