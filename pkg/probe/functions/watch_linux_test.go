package functions

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

func watch(t *testing.T, s *Stacks, pid int) *Watch {
	t.Helper()
	w := s.Watch(pid, harness.Must(procfs.OwnNamespace("mnt"))(t))
	if w == nil {
		t.Fatal("it has no names")
	}
	t.Cleanup(w.Close)
	return w
}

// The function in which a goroutine waits or computes is named, beside others that do the same before and after.
func TestTheFunctionOfAWaitIsNamed(t *testing.T) {
	for name, flags := range map[string][]string{
		"stripped": {"-ldflags=-s -w"}, "stripped, PIE": {"-trimpath", "-buildmode=pie", "-ldflags=-s -w"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "stripped" {
				harness.Slow(t) // builds the standard library again
			}
			file := filepath.Join(t.TempDir(), "waiter")
			build := exec.Command("go", append(append([]string{"build", "-o", file}, flags...), "./testdata/waiter")...)
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%s: %s", err, out)
			}
			cmd := exec.Command(file)
			in := harness.Must(cmd.StdinPipe())(t)
			lines := bufio.NewReader(harness.Must(cmd.StdoutPipe())(t))
			harness.Check(t, cmd.Start())
			defer func() { in.Close(); _ = cmd.Wait() }()
			say := func(what string) {
				fmt.Fprintln(in, what)
				_, err := lines.ReadString('\n')
				harness.Check(t, err)
			}
			w := watch(t, NewStacks(), cmd.Process.Pid)
			looks := time.NewTicker(20 * time.Millisecond)
			defer looks.Stop()
			look := func(n int) {
				for range n {
					<-looks.C
					w.Look()
				}
			}
			for _, what := range []string{"sleeps", "naps", "computes"} {
				harness.Until(t, what+" is named", func() bool { // it needs a CPU
					say(what)
					look(1)
					before := w.Looks()
					look(20)
					last := w.Looks()
					say("")
					look(3)
					got, _ := w.Between(before, last)
					if len(got) > 0 && (got[0].Function != "main.(*server)."+what || len(got) < 2) {
						t.Errorf("%s: %+v, of %d places", what, got, len(w.stays))
					}
					return len(got) > 0
				})
			}
			harness.Equal(t, len(w.Main()) > 0 && w.main != 0, true, "the main goroutine is found")
		})
	}
}

func TestAProgramWithoutGoFunctionsIsNotWatched(t *testing.T) {
	if w := NewStacks().Watch(1<<23, 1); w != nil {
		t.Error("a process that exited is watched")
	}
	cmd := exec.Command("sleep", "60")
	harness.Start(t, cmd)
	if w := NewStacks().Watch(cmd.Process.Pid, harness.Must(procfs.OwnNamespace("mnt"))(t)); w != nil {
		t.Error("a C program is watched")
	}
}

// A sample is named at many ends of waits, and read once.
func TestASampleIsNamedAlikeEachTime(t *testing.T) {
	w := watch(t, NewStacks(), os.Getpid())
	samples := slices.Repeat([]sample{{stack: own(t).Addresses}}, enough)
	for _, file := range []io.ReaderAt{w.file, &bounded{}} {
		got := w.of.calls(file, candidate{samples: samples})
		if len(got) != 2 || !strings.HasSuffix(got[0].Function, ".own") {
			t.Errorf("%+v", got)
		}
	}
	w.Look()
	again := watch(t, w.stacks, os.Getpid())
	again.Look()
	harness.Equal(t, w.of.sought, true, "the first process's goroutines are sought")
	harness.Equal(t, again.of.sought, false, "those of another with its program are, too")
	harness.Equal(t, len(again.stays) > 0, true, "they are read")
}

// What is read after the check of its mounts is not a tenant's program.
func TestAProcessThatChangedItsMountsIsNotWatched(t *testing.T) {
	if w := NewStacks().Watch(os.Getpid(), harness.Must(procfs.OwnNamespace("mnt"))(t)+1); w != nil {
		t.Error("it is watched")
	}
}

func TestLooksThatFailCountAndAHungProcessIsReadOnce(t *testing.T) {
	s := NewStacks()
	w := watch(t, s, os.Getpid())
	w.mounts++
	w.Look()
	w.mounts--
	s.patience.Most = 0
	w.Look()
	s.patience.Most = 4
	w.Look()
	harness.Equal(t, w.Looks(), 3)
	harness.Equal(t, len(w.cpu.looks), 3, "looks of the profile")
	harness.Equal(t, len(w.stays), 0, "it is read after it hung")
}

// Naming that takes too long goes on beside the next looks.
func TestLateNamingReadsNothingThatLooksWrite(t *testing.T) {
	s := NewStacks()
	w := watch(t, s, os.Getpid())
	for range 3 {
		w.Look()
		w.Look()
		s.patience.Each = 0
		w.Main()
		s.patience.Each = time.Minute
	}
	w.Look()
	harness.Equal(t, w.Looks(), 7)
}

func TestManyGoroutinesAtOnePlaceAreNotNamed(t *testing.T) {
	w := watch(t, NewStacks(), os.Getpid())
	for i := range uint64(candidatesMax + 1) {
		w.stays[place{goroutine: i}] = &stay{looks: []int{1, 2}}
	}
	w.looks = 2
	if got := w.Main(); got != nil || w.stacks.at != (time.Time{}) {
		t.Errorf("%+v", got)
	}
}

// A stack that ends before memory that is not mapped hides no other.
func TestStacksAreReadToTheirEnds(t *testing.T) {
	page := unix.Getpagesize()
	memory := harness.Must(unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON))(t)
	defer func() { _ = unix.Munmap(memory) }()
	harness.Check(t, unix.Mprotect(memory[page:], unix.PROT_NONE))
	memory[page-1], memory[0] = 1, 2
	start := uint64(uintptr(unsafe.Pointer(&memory[0])))
	end := start + uint64(page)
	p := &process{pid: os.Getpid()}
	got := p.memory([]place{{sp: end - 100, high: end}, {sp: start, high: end}})
	if len(got) != 100+min(page, stackBytes) || got[99] != 1 || got[100] != 2 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestAProfileIsBounded(t *testing.T) {
	var p profile
	for range LooksMax {
		p.looks = append(p.looks, nil)
		p.keep(make([]sample, 27))
	}
	all := 0
	for _, samples := range p.looks {
		all += len(samples)
	}
	if all != p.kept || all > samplesKept || all < samplesKept-27 || len(p.looks[LooksMax-1]) == 0 {
		t.Errorf("%d samples", all)
	}
	size := ringPages * unix.Getpagesize()
	ring := harness.Must(unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON))(t)
	p.rings = map[int][]byte{1 << 23: ring}
	p.look(os.Getpid(), true)
	defer p.close()
	if p.rings[1<<23] != nil {
		t.Error("it keeps what an ended thread wrote")
	}
}

func TestOfAPluginOnlyTheMainGoroutineIsNamedAgain(t *testing.T) {
	w := watch(t, NewStacks(), os.Getpid())
	main := place{goroutine: 1, sp: 1}
	for i := range uint64(3) {
		w.stays[place{goroutine: 2 + i, sp: 1}] = &stay{looks: []int{1, 2, 3, 4}}
	}
	w.stays[main] = &stay{looks: []int{2, 3}}
	w.looks = 4
	if got := w.Main(); got != nil || w.main != 0 {
		t.Errorf("without names: %+v of %d", got, w.main)
	}
	w.main = main.goroutine
	w.stacks.at = time.Time{}
	w.stays[main].looks = []int{2}
	if got := w.Main(); got != nil || w.stacks.at != (time.Time{}) {
		t.Errorf("others are named: %+v", got)
	}
}
