package winproc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/windows/etw"
	"github.com/cniscope/cniscope/pkg/windows/etw/etl"
	"github.com/cniscope/cniscope/test/etwtest"
	"github.com/cniscope/cniscope/test/harness"
)

// Windows' delivery delay.
const flush = 20 * ms

// recorded replays a world's trace with Windows' delay.
type recorded struct{ *world }

// As two sessions record on Windows Server 2025.
func (w recorded) trace() []byte {
	var kernel, system []byte
	put := func(p etw.Process) {
		p.Provider, p.Version = etw.KernelProcess, 5
		if p.What == etw.End {
			p.Version = 2
		}
		kernel = append(kernel, etwtest.Entry(etwtest.Record(p))...)
		p.Provider, p.Version, p.Time, p.Image = etw.SystemProcess, 4, p.Time+10, base(p.Image)
		system = append(system, etwtest.Entry(etwtest.Record(p))...)
	}
	const tick = 100 // ns
	for _, l := range w.lives {
		with, _ := Told(l.made)
		p := etw.Process{
			PID: l.PID, Parent: l.Entry.Parent, Created: int64(l.Entry.Created),
			Image: `\Device\HarddiskVolume3` + strings.TrimPrefix(l.file, "C:"), CommandLine: with.CommandLine,
		}
		p.What, p.Time = etw.Start, (l.Entry.Created.unix()-calendar)/tick
		put(p)
		p.What, p.Time, p.Code, p.Image = etw.End, l.ends/tick, l.code, base(l.file)
		if l.ends < 1<<50 {
			put(p)
		}
	}
	return etwtest.File{Began: 1, Start: uint64(at(0)), Compress: true, Buffers: [][]byte{kernel, system}}.Bytes()
}

func (w recorded) Run(_ context.Context, t etw.Taker) error {
	r, err := etl.NewReader(bytes.NewReader(w.trace()))
	if err != nil {
		return err
	}
	var told []etw.Process
	var d etw.Decoder
	for {
		var rec etw.Record
		if err := r.Next(&rec); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if p, ok := d.Decode(&rec); ok {
			told = append(told, p)
		}
	}
	slices.SortStableFunc(told, func(a, b etw.Process) int { return int(a.Time - b.Time) })
	s := etw.NewSequencer(t, 55*time.Millisecond)
	for end := told[len(told)-1].Time + int64(time.Second); w.now < end; w.now += 10 * ms {
		for len(told) > 0 && told[0].Time+flush <= w.now {
			s.Take(told[0])
			told = told[1:]
		}
		s.Advance(w.now)
	}
	return nil
}

// told returns a Source's events.
func (w recorded) told(t *testing.T) (lines []string, stats Stats) {
	t.Helper()
	s := New(Options{Processes: 100, Arguments: arguments.Known, System: w.world}, w)
	s.anchored.Store(&[]anchor.Anchor{{PID: runtime, Start: at(1 * ms).unix()}})
	r := newReader(s, func(e event.Event) {
		begins := fmt.Sprint(e.Time/ms, " ")
		switch b := e.Body.(type) {
		case *event.Exec:
			line := begins + b.Name + " runs"
			if b.Call != nil {
				line += " as " + b.Call.Command
			}
			if b.Unidentified {
				line += " unidentified"
			}
			lines = append(lines, line)
		case *event.Exit:
			lines = append(lines, fmt.Sprintf("%sends with %#x, unseen %v", begins, b.Code, b.Unseen))
		case *event.Lost:
			lines = append(lines, fmt.Sprintf("%slost: %s", begins, b.Reason))
		}
	})
	r.lives = func(anchor.Anchor) bool { return true }
	harness.Check(t, errors.Join(r.begin(), w.Run(t.Context(), r)))
	r.tell(w.now)
	r.close()
	return lines, s.Stats()
}

// Two sessions are joined with data of running processes. A command that exited too early is known by its command
// line.
func TestATraceIsObserved(t *testing.T) {
	w := recorded{&world{now: 50 * ms}}
	const netsh = `C:\Windows\System32\netsh.exe`
	w.add(runtime, 1, 1*ms, 1<<60, `C:\containerd.exe`, "containerd")
	w.add(8000, runtime, 100*ms, 5100*ms, `C:\opt\cni\bin\antrea.exe`, "antrea.exe", called...)
	w.add(8004, 8000, 130*ms, 4000*ms, netsh, "netsh.exe interface show", called...).code = 1
	w.add(8008, 8000, 4100*ms, 4108*ms, netsh, "netsh.exe interface show", called...).code = 0xc0000005
	w.add(9000, 3, 4200*ms, 4300*ms, `C:\Windows\System32\svchost.exe`, "svchost.exe")
	lines, stats := w.told(t)
	want := []string{
		"100 antrea runs as ADD", "130 netsh runs", "4000 ends with 0x1, unseen false",
		"4100 netsh runs", "4108 ends with 0xc0000005, unseen false", "5100 ends with 0x0, unseen false",
	}
	if !slices.Equal(lines, want) || stats.Read != 2 || stats.Unread[unreadGone] != 1 {
		t.Errorf("%s\n%+v", strings.Join(lines, "\n"), stats)
	}
}

// It is reported as lost.
func TestAPluginThatWasTooShort(t *testing.T) {
	w := recorded{&world{now: 50 * ms}}
	w.add(runtime, 1, 1*ms, 1<<60, `C:\containerd.exe`, "containerd")
	w.add(8000, runtime, 100*ms, 110*ms, `C:\opt\cni\bin\antrea.exe`, "antrea.exe", called...)
	lines, stats := w.told(t)
	if !slices.Equal(lines, []string{"100 lost: child of the runtime gone before it was looked at"}) || stats.Unread[unreadGone] != 1 {
		t.Errorf("%v %+v", lines, stats)
	}
}
