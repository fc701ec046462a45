package kernel

import (
	"errors"
	"maps"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/cniscope/cniscope/test/harness"
)

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
