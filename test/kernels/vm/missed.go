//go:build linux

package main

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// missed lists the BPF programs that the kernel did not run when it should have: it never
// runs one twice at a time on a CPU.
func missed() (all []string) {
	for id, err := ebpf.ProgramGetNextID(0); err == nil; id, err = ebpf.ProgramGetNextID(id) {
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue
		}
		if st, err := p.Stats(); err == nil && st.RecursionMisses > 0 {
			all = append(all, fmt.Sprintf("%s %d times", p.String(), st.RecursionMisses))
		}
		_ = p.Close()
	}
	return all
}
