package kernel

import (
	"bytes"
	"os"
	"testing"
	"unsafe"

	"github.com/cniscope/cniscope/test/harness"
)

func TestObjectsAreAsTheyWereAfterTheirMemoryWasGivenBack(t *testing.T) {
	objects := map[string][]byte{"life_bpfel.o": _LifeBytes, "inside_bpfel.o": _InsideBytes, "functions_bpfel.o": _FunctionsBytes}
	releaseObjects()
	for name, object := range objects {
		want := harness.Must(os.ReadFile(name))(t)
		if !bytes.Equal(object, want) {
			t.Errorf("%s is not what it was", name)
		}
	}
}

func TestWholePagesLeaveOutWhatIsBesideASlice(t *testing.T) {
	page := os.Getpagesize()
	memory := make([]byte, 5*page)
	first := -int(uintptr(unsafe.Pointer(&memory[0]))) & (page - 1)
	for _, c := range []struct{ from, to, begin, end int }{
		{first, first + 2*page, first, first + 2*page},
		{first + 1, first + 3*page, first + page, first + 3*page},
		{first, first + 2*page - 1, first, first + page},
		{first + 1, first + page + 1, 0, 0},
		{first + 1, first + 2, 0, 0},
		{first, first, 0, 0},
	} {
		got := wholePages(memory[c.from:c.to])
		if len(got) != c.end-c.begin || len(got) > 0 && &got[0] != &memory[c.begin] {
			t.Errorf("%+v: %d bytes", c, len(got))
		}
	}
}
