package kernel

import (
	"os"
	"unsafe"

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
