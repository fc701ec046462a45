package kernel

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// releaseObjects returns the memory of the loaded embedded objects: 1 MB in the program's writable mapping, which
// procfs.ReleaseProgram skips. They are never written, so the kernel can map them again. Failure is harmless.
func releaseObjects() {
	for _, object := range [][]byte{_LifeBytes, _InsideBytes, _FunctionsBytes} {
		if pages := wholePages(object); len(pages) > 0 {
			_ = unix.Madvise(pages, unix.MADV_DONTNEED)
		}
	}
}

// wholePages returns the whole pages of a slice.
func wholePages(b []byte) []byte {
	page := os.Getpagesize()
	begin := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (page - 1)
	if begin >= len(b) {
		return nil
	}
	return b[begin : begin+(len(b)-begin)/page*page]
}
