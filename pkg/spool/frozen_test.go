package spool

import (
	"testing"
	"time"
)

// TestASpoolOfBeforeIsRead opens one as v0.1 wrote it: twelve operations, of which five were
// exported. Its files are never written anew: a node that is updated has such a spool.
func TestASpoolOfBeforeIsRead(t *testing.T) {
	dir := copyDir(t, "testdata/version1")
	names, errs := readAll(t, dir, time.Time{})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	same(t, "all", names, numbers(0, 12))
	s := mustOpen(t, large(dir))
	names, damaged := waiting(t, s)
	if damaged != 0 || s.Found().Cut != 0 || s.Found().CursorLost {
		t.Errorf("%d damaged, %+v", damaged, s.Found())
	}
	same(t, "what waits", names, numbers(5, 12))
}
