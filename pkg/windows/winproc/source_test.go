package winproc

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/probe/proctracker"
	"github.com/cniscope/cniscope/pkg/windows/etw"
	"github.com/cniscope/cniscope/test/harness"
)

const (
	ms = int64(time.Millisecond)
	// Wall clock minus monotonic clock, in ns.
	calendar = int64(1_800_000_000_000_000_000)
	runtime  = 4
)

func at(mono int64) Filetime { return Filetime((mono+calendar)/100 + since1601) }

type life struct {
	*made
	Entry
	system *world
	file   string
	ends   int64
	code   uint32
	// Until then parameters are not written.
	young int64
	// Until then reading fails.
	moving int64
	// nameless is its file's error, unread that of other data.
	nameless, unread error
	reads, opened    int
	// In a container.
	contained bool
}

func (l *life) Created() (Filetime, error) { return l.Entry.Created, nil }
func (l *life) Parent() (uint32, error)    { return l.Entry.Parent, nil }
func (l *life) File() (string, error) {
	if l.system.now < l.moving {
		return "", errors.New("no name yet")
	}
	if l.nameless != nil {
		return "", l.nameless
	}
	return l.file, nil
}
func (l *life) Privileged() bool { return !l.contained }
func (l *life) Close()           { l.opened-- }
func (l *life) Ended() (End, bool) {
	return End{At: at(l.ends), Code: l.code, CPU: 7 * ms}, l.system.now >= l.ends
}

func (l *life) Read(address uint64, b []byte) error {
	l.reads++
	switch {
	case l.unread != nil:
		return l.unread
	case l.system.now >= l.ends, l.system.now < l.moving:
		return errors.New("gone")
	case l.system.now < l.young:
		clear(b)
		return nil
	}
	return l.made.Read(address, b)
}

type world struct {
	now    int64
	lives  []*life
	events []event.Event
}

func (w *world) Clocks() (mono, wall int64) { return w.now, w.now + calendar }

func (w *world) Processes() (all []Entry, err error) {
	for _, l := range w.lives {
		if began := l.Entry.Created.unix() - calendar; began <= w.now && w.now < l.ends {
			all = append(all, l.Entry)
		}
	}
	return all, nil
}

func (w *world) Open(pid uint32) (Process, error) {
	for _, l := range w.lives {
		if began := l.Entry.Created.unix() - calendar; l.PID == pid && began <= w.now && w.now < l.ends {
			l.opened++
			return l, nil
		}
	}
	return nil, errors.New("no such process")
}

func (w *world) add(pid, parent uint32, began, ends int64, file, command string, environment ...string) *life {
	l := &life{
		made: makeMemory(false, command, environment...), system: w, file: file, ends: ends,
		Entry: Entry{PID: pid, Parent: parent, Created: at(began), Name: base(file)},
	}
	w.lives = append(w.lives, l)
	return l
}

var called = []string{"SystemRoot=C:\\Windows", "CNI_COMMAND=ADD", "CNI_CONTAINERID=c1", "CNI_IFNAME=eth0", "CNI_PATH=C:\\OPT\\cni/bin;D:\\x"}

// The process in the container has the same environment.
func populate() (w *world, plugin, command *life) {
	w = &world{now: 50 * ms}
	w.add(runtime, 1, 1*ms, 1<<60, `C:\containerd.exe`, "containerd")
	plugin = w.add(10, runtime, 100*ms, 900*ms, `C:\opt\cni\bin\Antrea.exe`, `C:\opt\cni\bin\antrea.exe`, called...)
	plugin.code = 3
	command = w.add(11, 10, 200*ms, 700*ms, `C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe`,
		`powershell.exe -NoLogo -Command "Get-NetAdapter"`, called...)
	w.add(20, 19, 100*ms, 900*ms, `C:\opt\cni\bin\antrea.exe`, "antrea", called...)
	return w, plugin, command
}

// observe runs a Source over w until its events end.
func (w *world) observe(t *testing.T, tell func(w *world, s *Snapshots, r *reader)) Stats {
	t.Helper()
	snapshots := NewSnapshots(w, func(time.Duration) {})
	s := New(Options{Processes: 100, Arguments: arguments.Known, System: w, Busy: func() bool { return true }}, snapshots)
	s.anchored.Store(&[]anchor.Anchor{{PID: runtime, Start: at(1 * ms).unix()}})
	r := newReader(s, func(e event.Event) {
		if _, tick := e.Body.(*event.Tick); !tick {
			w.events = append(w.events, e)
		}
	})
	r.lives = func(anchor.Anchor) bool { return true }
	harness.Check(t, r.begin())
	tell(w, snapshots, r)
	r.tell(w.now)
	r.close()
	for _, l := range w.lives {
		harness.Equal(t, l.opened, 0, "process", l.PID, "is open times")
	}
	return s.Stats()
}

// For two seconds.
func every(interval int64) func(*world, *Snapshots, *reader) {
	return func(w *world, s *Snapshots, r *reader) {
		for ; w.now < 2000*ms; w.now += interval {
			_ = s.round(r)
		}
	}
}

// One event per line.
func (w *world) said() (lines []string) {
	for _, e := range w.events {
		switch b := e.Body.(type) {
		case *event.Exec:
			lines = append(lines, fmt.Sprintf("%d exec %s of %s root %v %v", e.Time/ms, b.Name, b.File, b.Root, b.Unidentified))
		case *event.Exit:
			lines = append(lines, fmt.Sprintf("%d exit %d unseen %v", e.Time/ms, b.Code, b.Unseen))
		case *event.Lost:
			lines = append(lines, fmt.Sprintf("lost: %s", b.Reason))
		}
	}
	return lines
}

func (w *world) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := w.said(); !slices.Equal(got, want) {
		t.Errorf("%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

var whole = []string{
	"100 exec antrea of C:/OPT/cni/bin/Antrea root true false",
	"200 exec powershell of C:/Windows/System32/WindowsPowerShell/v1.0/powershell root false false",
	"700 exit 0 unseen false", "900 exit 3 unseen false",
}

func TestAPluginAndItsCommandBySnapshots(t *testing.T) {
	for _, interval := range []int64{10 * ms, 100 * ms} {
		w, _, _ := populate()
		stats := w.observe(t, every(interval))
		w.expect(t, whole...)
		if stats.Read != 2 || len(stats.Unread) != 0 || stats.Snapshots == 0 {
			t.Errorf("%+v", stats)
		}
	}
}

func TestWhatIsTooShortForSnapshotsIsNotMadeUp(t *testing.T) {
	w, _, command := populate()
	command.Entry.Created, command.ends = at(202*ms), 208*ms
	w.observe(t, every(10*ms))
	w.expect(t, whole[0], whole[3])
}

func TestWhoIsTooYoungIsReadLater(t *testing.T) {
	w, plugin, command := populate()
	plugin.young, command.young = 140*ms, 240*ms
	stats := w.observe(t, every(10*ms))
	w.expect(t, whole...)
	harness.Equal(t, stats.Read, 2, stats)
	w, plugin, command = populate()
	plugin.moving, command.moving = 140*ms, 240*ms
	stats = w.observe(t, every(10*ms))
	w.expect(t, whole...)
	if stats.Read != 2 || len(stats.Unread) != 0 {
		t.Errorf("%+v", stats)
	}
}

// It appears by its times, and is counted.
func TestWhoIsGoneIsUnidentified(t *testing.T) {
	w, _, command := populate()
	command.young, command.ends = 300*ms, 250*ms
	stats := w.observe(t, every(10*ms))
	w.expect(t, whole[0], "200 exec powershell of  root false true", "lost: "+proctracker.LostSight, "250 exit 0 unseen false", whole[3])
	harness.Equal(t, stats.Unread[unreadGone], 1, stats)
	w, plugin, _ := populate()
	plugin.young = 1 << 60
	stats = w.observe(t, every(10*ms))
	if w.expect(t, "lost: "+proctracker.LostCall); stats.Unread[unreadEarly] != 1 {
		t.Errorf("%+v", stats)
	}
}

// Data read before is kept.
func TestWhoseFileIsUnknownIsReadAllTheSame(t *testing.T) {
	for name, test := range map[string]struct {
		nameless error
		ends     int64
	}{
		"it ends":      {errors.New("a device does not function"), 205 * ms},
		"it lives on":  {errors.New("a device does not function"), 700 * ms},
		"it is denied": {fs.ErrPermission, 700 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			w, plugin, command := populate()
			plugin.nameless, plugin.ends = test.nameless, test.ends+1*ms
			command.nameless, command.ends = test.nameless, test.ends
			stats := w.observe(t, every(2*ms))
			w.expect(t, "100 exec antrea of C:/OPT/cni/bin/antrea root true false", "200 exec powershell of powershell root false false",
				fmt.Sprintf("%d exit 0 unseen false", test.ends/ms), fmt.Sprintf("%d exit 3 unseen false", test.ends/ms+1))
			if stats.Read != 2 || len(stats.Unread) != 0 {
				t.Errorf("%+v", stats)
			}
		})
	}
}

func TestWhoEndsBeforeItsFileIsKnownIsReadAllTheSame(t *testing.T) {
	w, plugin, _ := populate()
	plugin.nameless = errors.New("a device does not function")
	stats := w.observe(t, func(w *world, _ *Snapshots, r *reader) {
		r.polls = false
		w.now = 125 * ms
		r.Soon(plugin.PID, 0)
		plugin.tells(r, 125*ms, proctracker.Began, "")
		plugin.tells(r, 1000*ms, proctracker.Ended, "")
		w.now = 2000 * ms
		r.Advance(2000 * ms)
	})
	w.expect(t, "100 exec antrea of C:/OPT/cni/bin/antrea root true false", "900 exit 3 unseen false")
	if stats.Read != 1 || len(stats.Unread) != 0 {
		t.Errorf("%+v", stats)
	}
}

// It is read once.
func TestARefusalIsFinal(t *testing.T) {
	w, _, command := populate()
	command.unread = fs.ErrPermission
	stats := w.observe(t, every(10*ms))
	if stats.Unread[unreadRefused] != 1 || command.reads != 1 {
		t.Errorf("%+v, read %d times", stats, command.reads)
	}
}

func TestACallUnderWayIsFound(t *testing.T) {
	w, _, _ := populate()
	w.now = 300 * ms
	w.observe(t, every(10*ms))
	w.expect(t, whole...)
	if e := w.events[1].Body.(*event.Exec); !e.InFlight || e.Caller != event.CallerRuntime || e.Call.ContainerID != "c1" {
		t.Errorf("%+v", e)
	}
}

// A reused PID is another process.
func TestANumberThatComesAgain(t *testing.T) {
	w, _, command := populate()
	command.ends = 300 * ms
	w.add(11, 10, 305*ms, 800*ms, `C:\Windows\System32\netsh.exe`, "netsh", called...)
	w.observe(t, every(10*ms))
	w.expect(t, whole[0], whole[1], "300 exit 0 unseen false", "305 exec netsh of C:/Windows/System32/netsh root false false", "800 exit 0 unseen false", whole[3])
}

// tells hands over a process's start or end as event tracing does, at that time.
func (l *life) tells(r *reader, now int64, kind proctracker.Kind, command string) {
	c := etw.Change{
		Notice:  proctracker.Notice{Kind: kind, Time: l.Entry.Created.unix() - calendar, PID: l.PID, Parent: l.Entry.Parent},
		Created: int64(l.Entry.Created), Image: `\Device\HarddiskVolume3` + l.file[2:], CommandLine: command,
	}
	if kind == proctracker.Ended {
		c.Time, c.Code = l.ends, l.code
	}
	l.system.now = now
	r.Take(c)
}

// At once, then in order. A command that exited before it was read is known by its command line.
func TestAPluginAndItsCommandByEventTracing(t *testing.T) {
	w, plugin, command := populate()
	short := w.add(12, 10, 750*ms, 758*ms, `C:\Windows\System32\netsh.exe`, "netsh.exe interface show", called...)
	short.code = 0xc0000005
	stats := w.observe(t, func(w *world, _ *Snapshots, r *reader) {
		r.polls = false
		w.now = 125 * ms
		r.Soon(10, int64(plugin.Entry.Created))
		plugin.tells(r, 180*ms, proctracker.Began, "")
		w.now = 225 * ms
		r.Soon(11, 0)
		command.tells(r, 280*ms, proctracker.Began, "powershell.exe -NoLogo")
		command.tells(r, 780*ms, proctracker.Ended, "")
		r.Soon(12, 0)
		short.tells(r, 830*ms, proctracker.Began, "netsh.exe interface show")
		short.tells(r, 838*ms, proctracker.Ended, "")
		plugin.tells(r, 1000*ms, proctracker.Ended, "")
		r.Advance(1000 * ms)
		w.now = 2000 * ms
		r.Advance(2000 * ms)
	})
	w.expect(t, whole[0], whole[1], whole[2], "750 exec netsh of /Device/‹text 15›/Windows/System32/netsh root false false",
		"758 exit 3221225477 unseen false", whole[3])
	if stats.Read != 2 || stats.Unread[unreadGone] != 1 {
		t.Errorf("%+v", stats)
	}
}

func TestSnapshotsCostAShareOfACPU(t *testing.T) {
	var said []time.Duration
	s := NewSnapshots(&world{}, func(d time.Duration) { said = append(said, d) })
	for _, cost := range []time.Duration{100 * time.Microsecond, 2 * time.Millisecond, 2 * time.Millisecond, time.Second, 900 * time.Microsecond} {
		s.weigh(cost)
	}
	harness.EqualSlices(t, []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 20 * time.Millisecond}, said)
}

func TestASourceEndsWithItsContext(t *testing.T) {
	w, _, _ := populate()
	ctx, cancel := context.WithCancel(t.Context())
	s := New(Options{Processes: 1, System: w}, NewSnapshots(w, func(time.Duration) { cancel() }))
	harness.Check(t, s.Run(ctx, func(event.Event) {}))
}

// Also its children without the name.
func TestAnAgentsWork(t *testing.T) {
	w, _, _ := populate()
	id := strings.Repeat("5b2919415cea", 6)[:64]
	hash := sha1.Sum([]byte(id))
	adapter := "vEthernet (db-6cqff-" + hex.EncodeToString(hash[:])[:6] + ")"
	w.lives[1].made = makeMemory(false, "antrea", append(slices.Clone(called), "CNI_CONTAINERID="+id, "CNI_ARGS=K8S_POD_NAME=db-6cqff")...)
	w.add(50, 1, 2*ms, 1<<60, `C:\antrea-agent.exe`, "antrea-agent")
	w.add(51, 1, 2*ms, 1<<60, `C:\other.exe`, "other").contained = true
	ask := `powershell.exe -Command "Get-NetAdapter -InterfaceAlias \"` + adapter + `\""`
	w.add(60, 50, 150*ms, 600*ms, `C:\powershell.exe`, ask)
	w.add(61, 50, 300*ms, 400*ms, `C:\powershell.exe`, "powershell.exe -NoExit -Command -")
	w.add(62, 51, 300*ms, 400*ms, `C:\powershell.exe`, ask)
	w.add(63, 1, 300*ms, 400*ms, `C:\notepad.exe`, "notepad")
	w.add(64, 50, 1500*ms, 1600*ms, `C:\powershell.exe`, ask)
	w.add(64, 50, 1605*ms, 1700*ms, `C:\powershell.exe`, ask) // reuses a PID within an interval
	w.observe(t, every(10*ms))
	var got []string
	for _, e := range w.events {
		switch b := e.Body.(type) {
		case *event.Agent:
			got = append(got, fmt.Sprintf("%d agent %s %d", e.Time/ms, b.Name, b.PID))
		case *event.Exec:
			if b.ParentPID == 50 || b.PID >= 60 {
				got = append(got, fmt.Sprintf("%d exec %s %d names %v", e.Time/ms, b.Name, b.PID, slices.Equal(b.Mentions, []string{id})))
			}
		case *event.Exit:
			if !strings.HasPrefix(string(b.Process), "1") {
				got = append(got, fmt.Sprintf("%d exit of %s", e.Time/ms, b.Process[:2]))
			}
		}
	}
	want := []string{
		"150 agent antrea-agent 50", "150 exec powershell 60 names true", "300 exec powershell 61 names false",
		"400 exit of 61", "600 exit of 60", "1500 exec powershell 64 names true", "1600 exit of 64",
		"1605 exec powershell 64 names true", "1700 exit of 64",
	}
	harness.EqualSlices(t, got, want, strings.Join(got, "\n"), strings.Join(want, "\n"))
	w.events = slices.DeleteFunc(w.events, func(e event.Event) bool { _, is := e.Body.(*event.Clock); return is })
	if !slices.IsSortedFunc(w.events, func(a, b event.Event) int { return int(a.Time - b.Time) }) {
		t.Error("what happened is not told in order")
	}
}
