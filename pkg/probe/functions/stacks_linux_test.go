package functions

import (
	"os"
	"reflect"
	"runtime"
	"testing"

	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

// own is a stack of the test's own program, which a function of the standard library called.
func own(t *testing.T) Stack {
	t.Helper()
	stat, err := os.ReadFile("/proc/self/stat")
	harness.Check(t, err)
	start, end := codeOf(t, string(stat))
	mounts, err := procfs.OwnNamespace("mnt")
	harness.Check(t, err)
	at := func(f any) uint64 { return uint64(reflect.ValueOf(f).Pointer()) }
	return Stack{
		PID: uint32(os.Getpid()), Mounts: mounts, Start: start, End: end,
		Addresses: []uint64{at(os.Getpid), at(own) + 1, at(runtime.GC) + 1, at(TestStacksAreNamed) + 1, 1},
	}
}

func TestStacksAreNamed(t *testing.T) {
	const of = "github.com/cniscope/cniscope/pkg/probe/functions."
	s, stack := NewStacks(), own(t)
	for range 2 { // from the file, then from memory
		got := s.name(stack)
		if len(got) != 2 || got[0].Function != of+"own" || got[1].Function != of+"TestStacksAreNamed" {
			t.Errorf("%+v", got)
		}
	}
	harness.Equal(t, len(s.programs), 1)
	harness.Equal(t, len(s.stacks), 1)
}

func TestAnotherProgramThanAtTheForkIsNotNamed(t *testing.T) {
	s, stack := NewStacks(), own(t)
	for name, change := range map[string]func(*Stack){
		"it has exited":                 func(s *Stack) { s.PID = 1 << 23 },
		"its code has another size":     func(s *Stack) { s.End++ },
		"it is in a container":          func(s *Stack) { s.Mounts++ },
		"the kernel side reported none": func(s *Stack) { s.Mounts = 0 },
	} {
		of := stack
		change(&of)
		if got := s.Name(of); len(got) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if len(s.stacks) > 0 {
		t.Errorf("%v", s.stacks)
	}
}

func TestStacksAreBounded(t *testing.T) {
	s, stack := NewStacks(), own(t)
	for i := range uint64(stacksMax + 10) {
		stack.Addresses = []uint64{stack.Start + i}
		s.name(stack)
	}
	if n := len(s.stacks); n > stacksMax || n == 0 {
		t.Errorf("%d stacks", n)
	}
	stack.Addresses = nil
	for range 100 {
		stack.Addresses = append(stack.Addresses, uint64(reflect.ValueOf(own).Pointer())+1)
	}
	if got := s.name(stack); len(got) != framesMax {
		t.Errorf("%d calls", len(got))
	}
}
