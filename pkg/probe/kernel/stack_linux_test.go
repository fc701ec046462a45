package kernel

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/cniscope/cniscope/test/harness"
)

// Before Linux 6.12 a call's stack is a multiple of 32 bytes, and those of nested calls have 512 together
// (kernel/bpf/verifier.c, check_max_stack_depth_subprog).
func TestNestedCallsFitTheStackOfOlderKernels(t *testing.T) {
	const most, unit = 512, 32
	for name, load := range map[string]func() (*ebpf.CollectionSpec, error){"life": LoadLife, "inside": LoadInside} {
		for program, spec := range harness.Must(load())(t).Programs {
			own, calls, function := map[string]int{}, map[string][]string{}, ""
			var framed [16]bool // registers that hold the frame's address
			for _, in := range spec.Instructions {
				if symbol := in.Symbol(); symbol != "" {
					function, framed = symbol, [16]bool{}
				}
				depth := 0
				switch op := in.OpCode; {
				case in.IsFunctionCall():
					calls[function] = append(calls[function], in.Reference())
				case op == asm.Mov.Op(asm.RegSource):
					framed[in.Dst] = in.Src == asm.RFP
				case op == asm.Add.Op(asm.ImmSource) && framed[in.Dst]:
					depth = -int(in.Constant)
				case op.Class().IsLoad() && in.Src == asm.RFP, op.Class().IsStore() && in.Dst == asm.RFP:
					depth = -int(in.Offset)
				}
				own[function] = max(own[function], depth)
			}
			var whole func(string) int
			whole = func(f string) (deepest int) {
				for _, called := range calls[f] {
					deepest = max(deepest, whole(called))
				}
				return deepest + (max(own[f], 1)+unit-1)/unit*unit
			}
			if n := whole(spec.Instructions.Name()); n > most {
				t.Errorf("%s of %s needs %d bytes of stack, %d at most", program, name, n, most)
			}
		}
	}
}
