package kernel

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// releaseObjects gives back the memory of the embedded objects once they are loaded: a megabyte of the program's file that
// lies among what the program writes to, where procfs.ReleaseProgram leaves all as it is. Nobody writes to these, so what is
// read again is mapped again. Where it fails they stay.
func releaseObjects() {
	for _, object := range [][]byte{_LifeBytes, _InsideBytes, _FunctionsBytes} {
		if pages := wholePages(object); len(pages) > 0 {
			_ = unix.Madvise(pages, unix.MADV_DONTNEED)
		}
	}
}

// wholePages are the pages of which a slice has every byte.
func wholePages(b []byte) []byte {
	page := os.Getpagesize()
	begin := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (page - 1)
	if begin >= len(b) {
		return nil
	}
	return b[begin : begin+(len(b)-begin)/page*page]
}
