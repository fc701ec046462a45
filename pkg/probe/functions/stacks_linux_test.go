package functions

import (
	"encoding/binary"
	"os"
	"reflect"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

// own is a stack of the test's own program, which a function of the standard library called.
func own(t *testing.T) Stack {
	t.Helper()
	stat := harness.Must(os.ReadFile("/proc/self/stat"))(t)
	start, end := codeOf(t, string(stat))
	mounts := harness.Must(procfs.OwnNamespace("mnt"))(t)
	at := func(f any) uint64 { return uint64(reflect.ValueOf(f).Pointer()) }
	return Stack{
		Image: Image{Mounts: mounts, Start: start, End: end}, PID: uint32(os.Getpid()),
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

func TestAProcessIsOpenedOnce(t *testing.T) {
	s, stack := NewStacks(), own(t)
	stack.Process = "1@2"
	harness.Equal(t, len(s.Name(stack)), 2, "calls")
	stack.PID = 1 << 23
	harness.Equal(t, len(s.Name(stack)), 2, "calls of the same program")
	for name, change := range map[string]func(*Stack){
		"another process":              func(s *Stack) { s.Process = "2@2" },
		"another program":              func(s *Stack) { s.Execs++ },
		"another place in its program": func(s *Stack) { s.Addresses = s.Addresses[1:] },
		"its code is elsewhere":        func(s *Stack) { s.Start, s.End = s.Start+8, s.End+8 },
		"it is in a container":         func(s *Stack) { s.Mounts++ },
	} {
		of := stack
		change(&of)
		if got := s.Name(of); len(got) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
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

// A plugin's author chooses how long naming lasts, and all events wait for it.
func TestNamingHasAShareOfTheTime(t *testing.T) {
	s, stack := NewStacks(), own(t)
	if got := s.Name(stack); len(got) == 0 || s.left >= spare {
		t.Errorf("%d calls, %s left", len(got), s.left)
	}
	synctest.Test(t, func(t *testing.T) {
		s.left, s.at = -time.Second, time.Now()
		for range share {
			if got := s.Name(stack); len(got) > 0 {
				t.Errorf("%+v, %s left", got, s.left)
			}
			time.Sleep(time.Second)
		}
		if got := s.Name(stack); len(got) == 0 {
			t.Error("it names nothing again")
		}
	})
}

// endless is a file whose table never ends: 1.3 million reads for one stack.
type endless struct {
	head  []byte
	reads int
}

func (e *endless) ReadAt(into []byte, from int64) (int, error) {
	e.reads++
	for i := range into {
		switch at := from + int64(i); {
		case at < int64(len(e.head)):
			into[i] = e.head[at]
		case at%10 == 0: // a 1 of ten bytes
			into[i] = 0x81
		case at%10 == 9:
			into[i] = 0
		default:
			into[i] = 0x80
		}
	}
	return len(into), nil
}

func TestAnEndlessTableIsReadToABound(t *testing.T) {
	const base, function, values = 1 << 12, 1 << 10, 1<<12 + 4
	file := &endless{head: make([]byte, values)}
	for at, v := range map[int]uint32{512 + 4: function - 512, 512 + 8: 1 << 31, function + 20: values, function + 24: values} {
		binary.LittleEndian.PutUint32(file.head[at:], v)
	}
	copy(file.head, "runtime.f\x00")
	p := &Program{image: image{file, binary.LittleEndian, []segment{{base, 0, 1 << 40}}}, start: base, end: 1 << 40}
	p.table = &goTable{image: p.image, at: base, step: 1, count: 1, names: base, files: base, units: base, values: base - 4, funcs: base + 512, text: base}
	stack := make([]uint64, 32)
	for i := range stack {
		stack[i] = uint64(1<<30 + i)
	}
	NewStacks().callers(p, file, stack)
	if file.reads > readsMax || file.reads < readsMax/2 {
		t.Errorf("%d reads", file.reads)
	}
}
