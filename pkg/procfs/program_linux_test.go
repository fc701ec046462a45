package procfs

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

func TestCleanRangesAreWhatTheProgramNeverWrites(t *testing.T) {
	const smaps = `00400000-010de000 r-xp 00000000 00:1b 4711                               /usr/bin/cniscope
Size:              13176 kB
Rss:                9000 kB
Private_Dirty:         0 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
010de000-01fc2000 r--p 00cde000 00:1b 4711                               /usr/bin/cniscope
Rss:                9000 kB
Anonymous:             0 kB
Swap:                  0 kB
01fc2000-01fc4000 r--p 01bc2000 00:1b 4711                               /usr/bin/cniscope
Rss:                   8 kB
Anonymous:             8 kB
Swap:                  4 kB
01fc4000-01fc6000 r--p 01bc4000 00:1b 4711                               /usr/bin/cniscope
Rss:                   0 kB
Anonymous:             0 kB
Swap:                  8 kB
SwapPss:               8 kB
01fc6000-021bc000 rw-p 01bc6000 00:1b 4711                               /usr/bin/cniscope
Anonymous:             0 kB
c000000000-c000400000 rw-p 00000000 00:00 0
Anonymous:             0 kB
7f0000000000-7f0000001000 r--s 00000000 00:0f 12                         anon_inode:bpf-map
Anonymous:             0 kB
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]
Anonymous:             0 kB
`
	want := []addresses{{0x400000, 0x10de000}, {0x10de000, 0x1fc2000}}
	harness.EqualSlices(t, cleanRanges([]byte(smaps), "/usr/bin/cniscope"), want)
}

func TestProgramGoesOnWithoutWhatWasReleased(t *testing.T) {
	harness.Check(t, ReleaseProgram())
	TestCleanRangesAreWhatTheProgramNeverWrites(t)
}

func TestOnlyPagesThatAreUsedAreMapped(t *testing.T) {
	const pages = 64
	page := os.Getpagesize()
	file := filepath.Join(t.TempDir(), "file")
	harness.Check(t, os.WriteFile(file, make([]byte, pages*page), 0o600))
	f := harness.Must(os.Open(file))(t)
	defer f.Close()
	mapped := harness.Must(unix.Mmap(int(f.Fd()), 0, pages*page, unix.PROT_READ, unix.MAP_PRIVATE))(t)
	defer func() { _ = unix.Munmap(mapped) }()
	start := uintptr(unsafe.Pointer(&mapped[0]))
	refused(t, mapSparsely([]addresses{{start, start + uintptr(len(mapped))}}))
	used := []int{8, 30, 31}
	for _, i := range used {
		if mapped[i*page] != 0 {
			t.Fatalf("page %d is not as it was written", i)
		}
	}
	for _, i := range present(t, start, pages) {
		if !slices.Contains(used, i) {
			t.Errorf("page %d is mapped, and was not used", i)
		}
	}
}

// present returns the mapped pages (Documentation/admin-guide/mm/pagemap.rst).
func present(t *testing.T, start uintptr, pages int) (which []int) {
	t.Helper()
	f := harness.Must(os.Open("/proc/self/pagemap"))(t)
	defer f.Close()
	entries := make([]byte, 8*pages)
	if _, err := f.ReadAt(entries, int64(start)/int64(os.Getpagesize())*8); err != nil {
		t.Fatal(err)
	}
	for i := range pages {
		if binary.NativeEndian.Uint64(entries[8*i:])>>63 == 1 {
			which = append(which, i)
		}
	}
	return which
}

func TestProgramGoesOnWhereItIsMappedSparsely(t *testing.T) {
	if err := MapSparsely(); !errors.Is(err, unix.EBUSY) { // with -count=2
		refused(t, err)
	}
	TestProgramGoesOnWithoutWhatWasReleased(t)
}

// refused skips a test on an old kernel, or in a container.
func refused(t *testing.T, err error) {
	t.Helper()
	for _, why := range []error{unix.ENOSYS, unix.EPERM, unix.EINVAL} {
		if errors.Is(err, why) {
			t.Skipf("the kernel maps what lies around, too: %v", err)
		}
	}
	harness.Check(t, err)
}
