package connector

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/peer"
	"github.com/cniscope/cniscope/pkg/probe/proctracker"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/test/harness"
)

// told is a follower of some processes that records its calls.
type told struct {
	running []proctracker.Running
	events  []event.Event
	lost    uint64
}

func (o *told) Running(int64) []proctracker.Running { return o.running }
func (o *told) Key(uint32) event.Process            { return "" }
func (o *told) Tell(at int64, _ uint32, body event.Body) {
	o.events = append(o.events, event.Event{Time: at, Body: body})
}
func (o *told) Lose(_ int64, _ uint32, _ string, n uint64) { o.lost += n }

// has starts a process with so many sockets until the test ends, and returns their inodes.
func (o *told) has(t *testing.T, sockets int) (inodes map[uint64]bool) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	for range sockets {
		fd := harness.Must(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))(t)
		f := os.NewFile(uintptr(fd), "a socket")
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	harness.Start(t, cmd)
	inodes = map[uint64]bool{}
	harness.Check(t, procfs.Descriptors(cmd.Process.Pid, func(_ int, target string) bool {
		if inode := procfs.SocketIn(target); inode != 0 {
			inodes[inode] = true
		}
		return true
	}))
	o.running = append(o.running, proctracker.Running{PID: uint32(cmd.Process.Pid)})
	return inodes
}

func TestSocketsThatLeadNowhereAreGivenUp(t *testing.T) {
	const tenth = int64(time.Second) / 10
	for took, rest := range map[int64]int64{0: 0, tenth / 10: tenth * 5, tenth: tenth * 50} {
		o, s := &told{}, newStreams()
		for range 5 {
			o.has(t, 3)
		}
		var calls []int64
		asks := map[uint64]int{}
		now, spent := int64(0), int64(0)
		s.clock = func() int64 { return now + spent }
		s.remotes = func(wanted []uint64) (map[uint64]peer.Remote, error) {
			calls = append(calls, now)
			spent += took
			for _, inode := range wanted {
				asks[inode]++
			}
			return nil, nil
		}
		for now = tenth; now < 600*tenth; now += tenth {
			s.look(now, o.running[:min(now/tenth, 5)], o)
		}
		harness.Equal(t, calls[0], tenth, "first asked after", time.Duration(calls[0]))
		for i, at := range calls[1:] {
			if at-calls[i] < rest {
				t.Errorf("asking took %s, and was done at %v", time.Duration(took), calls)
			}
		}
		if last := calls[len(calls)-1]; last > 300*tenth {
			t.Errorf("still asked after %s", time.Duration(last))
		}
		for inode, n := range asks {
			harness.Equal(t, n, asksMax, "asked times for", inode)
		}
		if len(asks) != len(s.open) || len(o.events) > 0 {
			t.Errorf("asked for %d of %d, told %v", len(asks), len(s.open), o.events)
		}
	}
}

func TestMoreSocketsThanThereIsRoomFor(t *testing.T) {
	o, s := &told{}, newStreams()
	s.max = 8
	sockets := len(o.has(t, 5))
	sockets += len(o.has(t, 20))
	sockets += len(o.has(t, 5))
	s.remotes = func(wanted []uint64) (map[uint64]peer.Remote, error) {
		remotes := map[uint64]peer.Remote{}
		for _, inode := range wanted {
			remotes[inode] = peer.Remote{Network: "tcp", Address: "192.0.2.1:1"}
		}
		return remotes, nil
	}
	now := int64(0)
	look := func() {
		for range 30 {
			now += int64(waitsEvery)
			s.look(now, o.running, o)
		}
	}
	count := func() (made, closed int) {
		for _, e := range o.events {
			if _, is := e.Body.(*event.Connect); is {
				made++
			} else {
				closed++
			}
		}
		return made, closed
	}
	look()
	if made, closed := count(); made != s.max || closed != 0 || o.lost != uint64(sockets-s.max) {
		t.Errorf("of %d sockets %d are told of, %d closed, %d lost", sockets, made, closed, o.lost)
	}
	o.running = nil
	look()
	if made, closed := count(); made != s.max || closed != s.max || len(s.open)+len(s.left) > 0 {
		t.Errorf("in the end %d are told of, %d closed, %d known", made, closed, len(s.open))
	}
}

func TestAWaitIsNotToldTooLong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	for name, killed := range map[string]bool{"over since it was seen": false, "until the process ended": true} {
		t.Run(name, func(t *testing.T) {
			held := harness.Must(os.Create(file))(t)
			defer held.Close()
			harness.Check(t, unix.Flock(int(held.Fd()), unix.LOCK_EX))
			cmd := exec.Command("flock", file, "sleep", "600")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			harness.Check(t, cmd.Start())
			pid := cmd.Process.Pid
			end := sync.OnceFunc(func() { _, _ = unix.Kill(-pid, unix.SIGKILL), cmd.Wait() })
			defer end()
			harness.Eventually(t, func() error { return waitsForALock(pid, true) })
			o, w := &told{running: []proctracker.Running{{PID: uint32(pid), Known: new(redact.Call)}}}, newWaits()
			const first, last, late, ended = int64(time.Second), int64(2 * time.Second), int64(3 * time.Second), int64(4 * time.Second)
			w.look(first, o)
			w.look(last, o)
			want := last
			if killed {
				want = ended
				end()
			} else {
				harness.Check(t, unix.Flock(int(held.Fd()), unix.LOCK_UN))
				harness.Eventually(t, func() error { return waitsForALock(pid, false) })
			}
			w.look(late, o)
			w.over(uint32(pid), ended, o)
			if len(o.events) != 1 {
				t.Fatalf("told of %d waits", len(o.events))
			}
			e := o.events[0]
			if told := e.Body.(*event.Wait); told.Start != first || told.Until(e.Time) != want {
				t.Errorf("%+v at %s, want it until %s", told, time.Duration(e.Time), time.Duration(want))
			}
		})
	}
}

func waitsForALock(pid int, want bool) error {
	locks, err := procfs.Locks(locksMax)
	is := slices.ContainsFunc(locks, func(l procfs.Lock) bool { return l.Waits && l.PID == pid })
	if err == nil && is != want {
		err = fmt.Errorf("waits for a lock: %v", is)
	}
	return err
}

func TestLocksThatAreNotReadAreLost(t *testing.T) {
	file := harness.Must(os.Create(filepath.Join(t.TempDir(), "locks")))(t)
	defer file.Close()
	for i := range int64(locksMax / 40) {
		harness.Check(t, unix.FcntlFlock(file.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: 2 * i, Len: 1}))
	}
	o, w := &told{running: []proctracker.Running{{PID: uint32(os.Getpid()), Known: new(redact.Call)}}}, newWaits()
	w.look(int64(time.Second), o)
	harness.Equal(t, o.lost, 1, "lost")
}
