package winproc

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/cniscope/cniscope/test/harness"
)

// A process that Wine has not started is ignored.
func TestASnapshotHasWhoRuns(t *testing.T) {
	const words = (unsafe.Sizeof(windows.SYSTEM_PROCESS_INFORMATION{}) + 7) / 8
	s := &system{buffer: make([]uint64, 3*words)}
	for i, created := range []Filetime{7, unset, 8} {
		p := (*windows.SYSTEM_PROCESS_INFORMATION)(unsafe.Pointer(&s.buffer[i*int(words)]))
		p.UniqueProcessID, p.InheritedFromUniqueProcessID, p.CreateTime = uintptr(10+i), 4, int64(created)
		if i < 2 {
			p.NextEntryOffset = uint32(8 * words)
		}
	}
	want := []Entry{{PID: 10, Parent: 4, Created: 7}, {PID: 12, Parent: 4, Created: 8}}
	harness.EqualSlices(t, s.parse(), want)
}
