package kernel

import (
	_ "unsafe" // for go:linkname

	"github.com/cilium/ebpf"
)

// haveProbeReadKernel is the library's test for bpf_probe_read_kernel. If it fails, the library assumes a kernel
// before 5.5, and replaces that helper and bpf_probe_read_user by bpf_probe_read. Under lockdown=confidentiality the
// test fails on every kernel, although bpf_probe_read_user is allowed and bpf_probe_read is not.
//
//go:linkname haveProbeReadKernel github.com/cilium/ebpf.haveProbeReadKernel
var haveProbeReadKernel func() error

// newCollection is ebpf.NewCollectionWithOptions without that replacement: the probe needs Linux 5.8 anyway.
func newCollection(spec *ebpf.CollectionSpec, o ebpf.CollectionOptions) (*ebpf.Collection, error) {
	haveProbeReadKernel = func() error { return nil }
	return ebpf.NewCollectionWithOptions(spec, o)
}
