package kernel

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

func TestObjectsAreAsTheyWereAfterTheirMemoryWasGivenBack(t *testing.T) {
	objects := map[string][]byte{"life_bpfel.o": _LifeBytes, "inside_bpfel.o": _InsideBytes, "functions_bpfel.o": _FunctionsBytes}
	releaseObjects()
	for name, object := range objects {
		want := harness.Must(os.ReadFile(name))(t)
		if !bytes.Equal(object, want) {
			t.Errorf("%s is not what it was", name)
		}
	}
}

func TestWholePagesLeaveOutWhatIsBesideASlice(t *testing.T) {
	page := os.Getpagesize()
	memory := make([]byte, 5*page)
	first := -int(uintptr(unsafe.Pointer(&memory[0]))) & (page - 1)
	for _, c := range []struct{ from, to, begin, end int }{
		{first, first + 2*page, first, first + 2*page},
		{first + 1, first + 3*page, first + page, first + 3*page},
		{first, first + 2*page - 1, first, first + page},
		{first + 1, first + page + 1, 0, 0},
		{first + 1, first + 2, 0, 0},
		{first, first, 0, 0},
	} {
		got := wholePages(memory[c.from:c.to])
		if len(got) != c.end-c.begin || len(got) > 0 && &got[0] != &memory[c.begin] {
			t.Errorf("%+v: %d bytes", c, len(got))
		}
	}
}

func TestALockedDownKernelIsToldFromOneThatDoesNotAcceptThePrograms(t *testing.T) {
	for line, remedy := range map[string]string{
		"unknown func bpf_probe_read_str#45":                      "lockdown", // 5.10 and 6.1
		"program of this type cannot use helper bpf_probe_read#4": "lockdown", // 6.12 and 7.2
		"R2 invalid mem access in bpf_probe_read_kernel#113":      "report",
	} {
		err := unsupported(&ebpf.VerifierError{Cause: unix.EINVAL, Log: []string{line, "processed 9 insns"}})
		var no *UnsupportedError
		if !errors.As(err, &no) || !strings.Contains(no.Remedy, remedy) {
			t.Errorf("%s: %v, want a remedy with %q", line, err, remedy)
		}
	}
}

// verified bounds the instructions that the verifier examines per program: a fifth of its million, since Linux 7.2
// examines three times as many as 6.18.
const verified = 200_000

func TestTheVerifierOfNewerKernelsHasRoomForEveryProgram(t *testing.T) {
	harness.Root(t)
	harness.Check(t, rlimit.RemoveMemlock())
	types := harness.Must(btf.LoadKernelSpec())(t)
	for i, load := range []func() (*ebpf.CollectionSpec, error){LoadLife, LoadInside, LoadFunctions} {
		spec := harness.Must(load())(t)
		if i == 2 {
			aim(spec, types)
		}
		for name := range spec.Programs {
			t.Run(name, func(t *testing.T) {
				if n := verifies(t, spec.Copy(), name); n > verified {
					t.Errorf("%d instructions, want at most %d", n, verified)
				}
			})
		}
	}
}

func verifies(t *testing.T, spec *ebpf.CollectionSpec, name string) uint32 {
	t.Helper()
	maps.DeleteFunc(spec.Programs, func(n string, _ *ebpf.ProgramSpec) bool { return n != name })
	if endings := spec.Maps["endings"]; endings != nil {
		endings.Contents = nil // other programs
	}
	c, err := ebpf.NewCollection(spec)
	if errors.Is(err, os.ErrPermission) && spec.Programs[name].AttachType != ebpf.AttachTraceRawTp {
		t.Skip("this kernel allows no programs at its functions; make test-kernels loads it")
	}
	harness.Check(t, err)
	defer c.Close()
	info := harness.Must(c.Programs[name].Info())(t)
	n, known := info.VerifiedInstructions()
	if !known {
		t.Skip("this kernel does not say (Linux 5.16)")
	}
	return n
}

// Before Linux 6.0 arm64 refuses a program with functions and tail calls.
func TestWhatGoesOnToOtherProgramsHasNoFunctions(t *testing.T) {
	spec := harness.Must(LoadInside())(t)
	for name, program := range spec.Programs {
		var goesOn, calls bool
		for _, in := range program.Instructions {
			goesOn = goesOn || in.IsBuiltinCall() && in.Constant == int64(asm.FnTailCall)
			calls = calls || in.IsFunctionCall()
		}
		if goesOn && calls {
			t.Errorf("%s does both", name)
		}
	}
}
