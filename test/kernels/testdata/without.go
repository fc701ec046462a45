//go:build linux

package kernel

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// withoutStacks has on_fork take no stacks.
func withoutStacks(spec *ebpf.CollectionSpec) {
	all := spec.Programs["on_fork"].Instructions
	for i, one := range all {
		if one.IsBuiltinCall() && one.Constant == int64(asm.FnGetStack) {
			all[i] = asm.Mov.Imm(asm.R0, 0).WithMetadata(one.Metadata)
		}
	}
}
