package kernel

import (
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/cniscope/cniscope/test/harness"
)

func TestEveryProgramIsHeld(t *testing.T) {
	for _, load := range []func() (*ebpf.CollectionSpec, error){LoadLife, LoadInside, LoadFunctions} {
		spec := harness.Must(load())(t)
		for name, program := range spec.Programs {
			goesOn := slices.ContainsFunc(program.Instructions, func(in asm.Instruction) bool {
				return in.IsBuiltinCall() && in.Constant == int64(asm.FnTailCall)
			})
			if goesOn || program.AttachType == ebpf.AttachTraceIter {
				continue
			}
			if holds, letsGo := callsKernel(program, "bpf_preempt_disable"), callsKernel(program, "bpf_preempt_enable"); !holds || !letsGo {
				t.Errorf("%s is not held: hold in bpf/task.h says why it is to be", name)
			}
		}
	}
}

// callsKernel reports whether a program, or one of its functions, calls a kernel function.
func callsKernel(program *ebpf.ProgramSpec, function string) bool {
	return slices.ContainsFunc(program.Instructions, func(in asm.Instruction) bool {
		return in.IsKfuncCall() && in.Reference() == function
	})
}
