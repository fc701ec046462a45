package spool

import (
	"testing"
	"time"
)

// TestASpoolOfBeforeIsRead opens a spool of v0.1: twelve operations, five of them exported. Its files never change,
// since updated nodes have such spools.
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
