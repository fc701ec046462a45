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
	raw, err := ReadMost(path(pid, "auxv"), most)
	for ; len(raw) >= 16; raw = raw[16:] {
		if binary.NativeEndian.Uint64(raw) == atEntry {
			return binary.NativeEndian.Uint64(raw[8:]), nil
		}
	}
	return 0, cmp.Or(err, os.ErrNotExist)
}
