package winproc

import (
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/windows"
)

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
