package kernel

import (
	_ "unsafe" // for go:linkname

	"github.com/cilium/ebpf"
)

// haveProbeReadKernel is the library's test whether there is bpf_probe_read_kernel. Where it fails the
// library takes the kernel for one older than 5.5, and has every program call bpf_probe_read in its place,
// and in that of bpf_probe_read_user. Under lockdown=confidentiality it fails on every kernel, though
// bpf_probe_read_user is allowed there and bpf_probe_read is not.
//
//go:linkname haveProbeReadKernel github.com/cilium/ebpf.haveProbeReadKernel
var haveProbeReadKernel func() error

// newCollection is ebpf.NewCollectionWithOptions, with each helper called as the program names it: the probe needs
// Linux 5.8 in any case.
func newCollection(spec *ebpf.CollectionSpec, o ebpf.CollectionOptions) (*ebpf.Collection, error) {
	haveProbeReadKernel = func() error { return nil }
	return ebpf.NewCollectionWithOptions(spec, o)
}
