package table

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/etw"
	"github.com/cniscope/cniscope/pkg/etw/etl"
	"github.com/cniscope/cniscope/pkg/etw/etwtest"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
)

const (
	ms = int64(time.Millisecond)
	// boot is when the made machine started, in ns since 1970.
	boot = int64(1_795_348_800_000_000_000)
	// flush is how long after an event Windows delivers it.
	flush = 20 * ms
)

// life is a process of a made Windows. Times are in ms since the machine started.
type life struct {
	pid, parent  uint32
	began, ended int64
	code         uint32
	file         string
	command      string
	environment  []string
}

func (l *life) created() Filetime { return since(l.began) }

func since(at int64) Filetime { return Filetime(since1601 + (boot+at*ms)/100) }

// machine is a made Windows: the System that a Source asks, and the Teller that tells it what a trace of it holds, as late
// as Windows would.
type machine struct {
	now   int64 // ns
	lives []*life
}

func (m *machine) Processes() ([]Entry, error) { return nil, nil }
func (m *machine) Clocks() (mono, wall int64)  { return m.now, boot + m.now }

func (m *machine) Open(pid uint32) (Process, error) {
	for _, l := range m.lives {
		if l.pid == pid && l.began*ms <= m.now && m.now < l.ended*ms {
			return &opened{made: makeMemory(false, l.command, l.environment...), life: l, m: m}, nil
		}
	}
	return nil, errors.New("no such process")
}

// opened is a process of a machine. Its memory is gone with it.
type opened struct {
	*made
	*life
	m *machine
}

func (o *opened) Created() (Filetime, error) { return o.created(), nil }
func (o *opened) Parent() (uint32, error)    { return o.parent, nil }
func (o *opened) File() (string, error)      { return o.file, nil }
func (o *opened) Close()                     {}
func (o *opened) Ended() (End, bool) {
	return End{At: since(o.ended), Code: o.code}, o.ended*ms <= o.m.now
}

func (o *opened) Read(at uint64, b []byte) error {
	if _, over := o.Ended(); over {
		return errors.New("it is over")
	}
	return o.made.Read(at, b)
}

// trace is what two sessions would have recorded of it, by Windows Server 2025.
func (m *machine) trace() []byte {
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
	for _, l := range m.lives {
		p := etw.Process{
			PID: l.pid, Parent: l.parent, Creator: l.parent, Created: int64(l.created()), Image: `\Device\HarddiskVolume3` + strings.TrimPrefix(l.file, "C:"),
			CommandLine: l.command, User: "S-1-5-18",
		}
		p.What, p.Time = etw.Start, l.began*10_000
		put(p)
		p.What, p.Time, p.Exited, p.Code, p.Image = etw.End, l.ended*10_000, int64(since(l.ended)), l.code, base(l.file)
		put(p)
	}
	return etwtest.File{Began: 1, Start: uint64(since(0)), Compress: true, Buffers: [][]byte{kernel, system}}.Bytes()
}

// Run implements Teller.
func (m *machine) Run(_ context.Context, t etw.Taker) error {
	r, err := etl.NewReader(bytes.NewReader(m.trace()))
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
	for end := told[len(told)-1].Time + int64(time.Second); m.now < end; m.now += 10 * ms {
		for len(told) > 0 && told[0].Time+flush <= m.now {
			s.Take(told[0])
			told = told[1:]
		}
		s.Advance(m.now)
	}
	return nil
}

// observe returns what a Source makes of a machine whose container runtime is this test.
func observe(t *testing.T, m *machine) (lines []string, stats Stats) {
	t.Helper()
	anchors := anchor.New()
	if !anchors.Serves("a pipe", os.Getpid()) {
		t.Fatal("this process is not there")
	}
	s := New(Options{Processes: 100, Arguments: arguments.Known, Anchors: anchors, System: m, Log: slog.New(slog.DiscardHandler)}, m)
	err := s.Run(t.Context(), func(e event.Event) {
		at := fmt.Sprint(e.Time/ms, " ")
		switch b := e.Body.(type) {
		case *event.Exec:
			line := fmt.Sprintf("%s%s runs %s %v", at, b.Process, b.Name, b.Args)
			if b.Call != nil {
				line += " " + b.Call.Command + " " + b.Call.Pod.Name
			}
			if b.Unidentified {
				line += " unidentified"
			}
			lines = append(lines, line)
		case *event.Exit:
			lines = append(lines, fmt.Sprintf("%s%s ends %#x unseen=%v", at, b.Process, b.Code, b.Unseen))
		case *event.Lost:
			lines = append(lines, fmt.Sprintf("%slost %s %d", at, b.Reason, b.Count))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines, s.Stats()
}

// TestATraceIsObserved: what two sessions tell, and what is read while a process lives, is one story. A command that was
// over before it could be read is known by the command line that the system logger told.
func TestATraceIsObserved(t *testing.T) {
	environment := []string{
		"CNI_COMMAND=ADD", `CNI_PATH=C:\opt\cni\bin`, "CNI_CONTAINERID=c1", "CNI_IFNAME=eth0", "CNI_NETNS=d8b0a2a5-0c44-4e3e-9a7e-0d2f6f2b7c11",
		"CNI_ARGS=K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0", `SystemRoot=C:\Windows`,
	}
	m := &machine{lives: []*life{
		{pid: 8000, parent: uint32(os.Getpid()), began: 100, ended: 5100, file: `C:\opt\cni\bin\antrea.exe`, command: `C:\opt\cni\bin\antrea.exe`, environment: environment},
		{pid: 8004, parent: 8000, began: 130, ended: 4000, code: 1, file: `C:\Windows\System32\netsh.exe`, command: `netsh.exe interface show`, environment: environment},
		{pid: 8008, parent: 8000, began: 4100, ended: 4108, code: 0xc0000005, file: `C:\Windows\System32\netsh.exe`, command: `netsh.exe interface show`, environment: environment},
		{pid: 9000, parent: 4, began: 4200, ended: 4300, file: `C:\Windows\System32\svchost.exe`, command: `svchost.exe`},
	}}
	lines, stats := observe(t, m)
	for _, want := range []string{
		"100 8000@100000000 runs antrea [] ADD web-0",
		"130 8004@130000000 runs netsh",
		"4000 8004@130000000 ends 0x1 unseen=false",
		"4100 8008@4100000000 runs netsh",
		"4108 8008@4100000000 ends 0xc0000005 unseen=false",
		"5100 8000@100000000 ends 0x0 unseen=false",
	} {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, want) }) {
			t.Errorf("nothing is %q in\n%s", want, strings.Join(lines, "\n"))
		}
	}
	if text := strings.Join(lines, "\n"); len(lines) != 6 || strings.Contains(text, "unidentified") {
		t.Errorf("there is something else:\n%s", text)
	}
	if stats.Read != 2 || stats.Unread[unreadGone] != 1 {
		t.Errorf("%+v", stats)
	}
}

// TestAPluginThatWasTooShort: nobody can say what it was, and that is told.
func TestAPluginThatWasTooShort(t *testing.T) {
	m := &machine{lives: []*life{
		{pid: 8000, parent: uint32(os.Getpid()), began: 100, ended: 110, file: `C:\opt\cni\bin\antrea.exe`, command: `antrea.exe`, environment: []string{"CNI_COMMAND=ADD"}},
	}}
	lines, stats := observe(t, m)
	if len(lines) != 1 || !strings.Contains(lines[0], "lost child of the runtime gone before it was looked at 1") || stats.Unread[unreadGone] != 1 {
		t.Errorf("%v %+v", lines, stats)
	}
}
