package kernel

import (
	"os"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

func TestCountersAreWhatTheProgramsCounted(t *testing.T) {
	harness.Root(t)
	spec := harness.Must(LoadLife())(t)
	m := harness.Must(ebpf.NewMap(spec.Maps["counters"]))(t)
	defer m.Close()
	s := new(Side)
	harness.Equal(t, s.Counters(), [LifeCounterCOUNTERS]uint64{}, "where nothing was opened")
	harness.Check(t, s.counters.open(m))
	for i := range uint32(LifeCounterCOUNTERS) {
		harness.Check(t, m.Put(i, uint64(10*i+1)))
	}
	for range 2 {
		for i, got := range s.Counters() {
			harness.Equal(t, got, uint64(10*i+1), "counter", i)
		}
		harness.Check(t, s.counters.close())
	}
}

func TestProcessesAreListedByBothNumbers(t *testing.T) {
	harness.Root(t)
	spec := harness.Must(LoadLife())(t)
	own := harness.Must(procfs.OwnNamespace("pid"))(t)
	harness.Check(t, spec.Variables["pid_ns"].Set(own))
	s := &Side{}
	defer func() { _ = s.Close(0) }()
	harness.Check(t, s.openNumbers(takeNumbers(spec)))
	keys := harness.Must(s.Numbers())(t)
	if !slices.ContainsFunc(keys, func(k Key) bool {
		return k.Pid == uint32(os.Getpid()) && k.Tgid != 0 && procfs.Alive(int(k.Pid), int64(k.Start))
	}) {
		t.Errorf("we, %d, are not among %v", os.Getpid(), keys)
	}
}

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
