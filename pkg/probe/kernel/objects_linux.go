package kernel

import (
	"os"
	"unsafe"
	_ "unsafe" // for go:linkname

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// releaseObjects returns 1 MB that procfs.ReleaseProgram skips as writable. The kernel can map it again, because
// nothing writes it.
func releaseObjects() {
	for _, object := range [][]byte{_LifeBytes, _InsideBytes, _FunctionsBytes} {
		if pages := wholePages(object); len(pages) > 0 {
			_ = unix.Madvise(pages, unix.MADV_DONTNEED)
		}
	}
}

func wholePages(b []byte) []byte {
	page := os.Getpagesize()
	begin := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (page - 1)
	if begin >= len(b) {
		return nil
	}
	return b[begin : begin+(len(b)-begin)/page*page]
}

// haveProbeReadKernel tests for kernels before 5.5, and also fails under lockdown=confidentiality. The library then
// replaces bpf_probe_read_user by bpf_probe_read, which lockdown forbids.
//
//go:linkname haveProbeReadKernel github.com/cilium/ebpf.haveProbeReadKernel
var haveProbeReadKernel func() error

// newCollection disables that: the probe needs Linux 5.8. It writes the variables itself: the library would
// map them, which keeps their maps until a garbage collection.
func newCollection(spec *ebpf.CollectionSpec, o ebpf.CollectionOptions) (*ebpf.Collection, error) {
	haveProbeReadKernel = func() error { return nil }
	for _, v := range spec.Variables {
		copy(spec.Maps[v.SectionName].Contents[0].Value.([]byte)[v.Offset:], v.Value)
	}
	clear(spec.Variables)
	return ebpf.NewCollectionWithOptions(spec, o)
}
