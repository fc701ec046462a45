package agents

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/test/harness"
)

// socketOfChild holds the other end of a socket pair, and returns its inode.
func socketOfChild(t *testing.T, more ...*os.File) (pid int, inode uint64) {
	t.Helper()
	ends := harness.Must(unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))(t)
	t.Cleanup(func() { _ = unix.Close(ends[0]) })
	far := os.NewFile(uintptr(ends[1]), "far")
	defer far.Close()
	var stat unix.Stat_t
	harness.Check(t, unix.Fstat(ends[1], &stat))
	cmd := exec.Command("sleep", "600")
	cmd.ExtraFiles = append(cmd.ExtraFiles, more...)
	cmd.ExtraFiles = append(cmd.ExtraFiles, far)
	harness.Start(t, cmd)
	return cmd.Process.Pid, stat.Ino
}

// budgeted is a walk in which each look at the clock takes that long.
func budgeted(each time.Duration, pids ...int) *walk {
	w, spent := walkAmong(pids...), time.Duration(0)
	w.spent = func() time.Duration { spent += each; return spent }
	return w
}

// A walk takes 1 s of CPU time at once, then 10 %, and resumes where it stopped.
func TestAWalkTakesAShareOfOneCPU(t *testing.T) {
	holder, inode := socketOfChild(t)
	var likely []int
	for i := range 100 {
		likely = append(likely, 1<<22+i) // no such process
	}
	w, rounds := budgeted(10*time.Millisecond), 0
	for now := int64(1); ; now += int64(500 * time.Millisecond) {
		rounds++
		if pid, over := w.holder(now, inode, append(likely, holder)); over {
			harness.Equal(t, pid, holder, "is said to hold it")
			break
		}
	}
	// 101 processes of 20 ms each: 1 s at once, then 50 ms in every half second.
	if rounds < 15 || rounds > 25 {
		t.Errorf("it took %d rounds", rounds)
	}
}

// A socket without a holder in a whole lap is searched again only on request.
func TestAWalkEndsThoughNobodyHoldsIt(t *testing.T) {
	w := walkAmong(os.Getpid())
	if pid, over := w.holder(1, 1, nil); !over || pid != 0 || w.running || len(w.wanted) != 0 {
		t.Errorf("%d, %v: %+v", pid, over, w)
	}
}

// Processes that a search did not need to look at are not kept for the next one.
func TestAWalkThatFoundKeepsNoList(t *testing.T) {
	holder, inode := socketOfChild(t)
	w := walkAmong(holder, os.Getpid())
	pid, _ := w.holder(1, inode, []int{holder, 1 << 22, 1<<22 + 1})
	if harness.Equal(t, pid, holder, "is said to hold it"); len(w.first)+len(w.list) > 0 {
		t.Errorf("left: %v, %v", w.first, w.list)
	}
}

// A search ends with the descriptor that it found, and a process that the kernel names needs no walk.
func TestWhoIsToldNeedsNoWalk(t *testing.T) {
	a, k, _ := awaiting(t, "unix", 1)
	defer harness.Must(os.Open(os.DevNull))(t).Close() // a later descriptor
	a.search.until = time.Unix(1, 0)
	a.walk.saved = 0
	told := kernel.KeyOf(startedAs(uint32(os.Getpid())), uint32(os.Getpid()))
	k.waiting[0].Other = kernel.InsideTaskKey(told)
	a.Tend(int64(200 * time.Millisecond))
	if x := k.exchanges[len(k.exchanges)-1]; x.Peer == nil || x.Peer.PID != uint32(os.Getpid()) {
		t.Errorf("told %+v", x)
	}
}

func TestAWalkBeginsWithRecentHolders(t *testing.T) {
	w := walkAmong()
	for i := range 20 {
		w.settle(uint64(i), 100+i)
	}
	w.ask(1, 99, []int{7})
	harness.EqualSlices(t, w.first, []int{104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119, 7})
	harness.Equal(t, threadTime() > 0, true, "CPU time of a thread")
}

// A process with too many descriptors for a slice is skipped.
func TestAProcessWithManyDescriptorsHidesNoOther(t *testing.T) {
	var many []*os.File
	for range 300 {
		one := harness.Must(os.Open(os.DevNull))(t)
		defer one.Close()
		many = append(many, one)
	}
	crowded, hidden := socketOfChild(t, many...)
	holder, inode := socketOfChild(t)
	for _, test := range []struct {
		each   time.Duration // of a look at the clock
		wanted uint64
		pid    int
	}{{0, hidden, crowded}, {slice, hidden, 0}, {slice, inode, holder}} {
		w := budgeted(test.each, crowded, holder)
		var pid int
		over := false
		for now := int64(1); !over; now += int64(10 * time.Second) {
			pid, over = w.holder(now, test.wanted, nil)
		}
		if pid != test.pid {
			t.Errorf("%d holds it, and %d was found", test.pid, pid)
		}
	}
}

// idle starts idle processes with three descriptors each.
func idle(t testing.TB, n string) {
	t.Helper()
	read, write, err := os.Pipe()
	harness.Check(t, err)
	cmd := exec.Command("sh", "-c", `i=0; while [ $i -lt `+n+` ]; do read _ <&3 & i=$((i+1)); done; echo; wait`)
	cmd.ExtraFiles = []*os.File{read}
	out := harness.Must(cmd.StdoutPipe())(t)
	harness.Check(t, cmd.Start())
	read.Close()
	t.Cleanup(func() { write.Close(); _ = cmd.Wait() })
	_, err = out.Read(make([]byte, 1))
	harness.Check(t, err)
}

// An agent's peer is found during the wait among 5,000 processes, each as slow as on a busy machine
// (BenchmarkALapOfManyProcesses).
func TestThePeerIsFoundAmongManyProcesses(t *testing.T) {
	const lap, second = 520 * time.Millisecond, int64(time.Second)
	other, _ := socketOfChild(t)
	for try := range int64(5) {
		holder, inode := socketOfChild(t)
		w := budgeted(lap/5000/2, append(slices.Repeat([]int{other}, 5000), holder)...)
		w.saved = burst
		pid, over := 0, false
		for now := 10*second*try + 1; !over && now < 10*second*try+2*second; now += int64(sampleAfter) {
			pid, over = w.holder(now, inode, nil)
		}
		harness.Equal(t, pid, holder, over)
	}
}

// BenchmarkALapOfManyProcesses looks at 5,000 processes with three descriptors each.
func BenchmarkALapOfManyProcesses(b *testing.B) {
	idle(b, "5000")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadTime()
	for b.Loop() {
		w := newWalk()
		w.start, w.saved = func(f func()) { f() }, time.Hour
		if pid, over := w.holder(1, 1, nil); !over || pid != 0 {
			b.Fatalf("%d, %v", pid, over)
		}
	}
	b.ReportMetric(float64((threadTime()-began).Milliseconds())/float64(b.N), "cpu-ms/op")
}
