package winproc

import (
	"slices"
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

func TestWindowsTakesACommandLineApartInTheSameWay(t *testing.T) {
	for line := range commandLines {
		if line == "" {
			continue
		}
		want, err := windows.DecomposeCommandLine(line)
		if got := split(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, Windows has %q, %v", line, got, want, err)
		}
	}
}

func TestTheLayoutIsTheOneOfXSys(t *testing.T) {
	var p windows.RTL_USER_PROCESS_PARAMETERS
	var b windows.PEB
	got := layout{
		word: uint64(unsafe.Sizeof(uintptr(0))), parameters: uint64(unsafe.Offsetof(b.ProcessParameters)),
		command: uint64(unsafe.Offsetof(p.CommandLine)), environment: uint64(unsafe.Offsetof(p.Environment)), size: uint64(unsafe.Offsetof(p.EnvironmentSize)),
	}
	if got != wide && got != narrow {
		t.Errorf("%+v", got)
	}
}
