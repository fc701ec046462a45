package etl_test

import (
	"bytes"
	"cmp"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/otlp/otlpjson"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/probe/image"
	"github.com/cniscope/cniscope/pkg/probe/proctracker"
	"github.com/cniscope/cniscope/pkg/timeline"
	"github.com/cniscope/cniscope/pkg/trace"
	"github.com/cniscope/cniscope/pkg/windows/etw"
	"github.com/cniscope/cniscope/pkg/windows/etw/etl"
	"github.com/cniscope/cniscope/test/etwtest"
	"github.com/cniscope/cniscope/test/harness"
)

var update = flag.Bool("update", false, "write the expected output anew")

const (
	ms     = int64(time.Millisecond)
	window = 55 * time.Millisecond
)

// world is a node as a trace shows it, plus environments, which traces lack.
type world struct {
	tracker *proctracker.Tracker
	now     int64
	changes map[uint32]etw.Change
	// over is the latest exit by PID.
	over map[uint32]int64
	// Empty except for plugins.
	environment func(etw.Change) []string
}

func (w *world) Soon(uint32, int64) {}
func (w *world) Lost(n uint64)      { w.tracker.Lost(n) }
func (w *world) Take(c etw.Change) {
	w.now = c.Time
	if c.Kind == proctracker.Began {
		w.changes[c.PID] = c
	} else {
		w.over[c.PID] = c.Time
	}
	w.tracker.Take(c.Notice)
	if c.Kind == proctracker.Began { // a process of Windows runs one program
		w.tracker.Take(proctracker.Notice{Kind: proctracker.Runs, PID: c.PID, Time: c.Time})
	}
}
func (w *world) Advance(read int64) { w.tracker.Advance(read, 0) }

// As a Windows source: with slashes, without ".exe".
func (w *world) Look(pid, up uint32, _ bool) (s proctracker.Sight, ok bool) {
	c, ok := w.changes[pid]
	path := strings.TrimSuffix(strings.ReplaceAll(c.Image, `\`, "/"), ".exe")
	s.At, s.Parent, s.Name = w.now, up, path[strings.LastIndexByte(path, '/')+1:]
	s.Image = image.Image{File: path, Args: strings.Fields(c.CommandLine), Env: w.environment(c)}
	if len(s.Args) > 0 {
		s.Args[0] = path
	}
	return s, ok
}

func (w *world) Caller(pid uint32) event.Caller {
	if w.environment(w.changes[pid]) != nil {
		return event.CallerRuntime
	}
	return ""
}
func (w *world) Runtime(uint32) bool { return false }

// Until the process's end was taken.
func (w *world) Alive(pid uint32, began int64) bool {
	return w.changes[pid].Time == began && w.over[pid] < began
}

// tell runs a trace through the pipeline. wall is the time of its start.
func tell(processes []etw.Process, h etl.Header, environment func(etw.Change) []string) (spans []*tracepb.ResourceSpans) {
	p := pipeline.New(
		timeline.Options{Settle: 500 * time.Millisecond, MaxHold: time.Minute, Processes: 1024, Operations: 64, Images: 2000, Facts: 1000},
		judge.Options{
			Thresholds: judge.Thresholds{Command: 250 * time.Millisecond, Call: 2 * time.Second},
			Sampling:   judge.Sampling{Ratio: 1},
		},
		trace.NewBuilder(trace.IDs{Seed: "a boot"}, trace.Node{Name: "win-0", OS: "windows", Arch: "amd64", Version: "test"}.Resource(), "test"))
	sink := func(e event.Event) {
		for _, r := range p.Apply(e) {
			if drawn := r.Drawn().Read(); r.Drawn().Spans != nil {
				spans = append(spans, drawn)
			}
		}
	}
	sink(event.Event{Time: h.Began, Body: &event.Clock{Wall: h.Start.UnixNano()}})
	sink(event.Event{Time: h.Began, Body: &event.Origin{Source: "etw"}})
	w := &world{changes: map[uint32]etw.Change{}, over: map[uint32]int64{}, environment: environment}
	w.tracker = proctracker.New(proctracker.Options{
		Source: "probe", Processes: 1024, Known: 4096, Window: 20 * time.Millisecond, Outlive: 30 * time.Second,
		Looker: w, Sink: sink,
	})
	s := etw.NewSequencer(w, window)
	slices.SortStableFunc(processes, func(a, b etw.Process) int { return cmp.Compare(a.Time, b.Time) })
	for _, p := range processes {
		s.Advance(p.Time)
		s.Take(p)
	}
	for last := processes[len(processes)-1].Time; w.now <= last+2*int64(time.Second); w.now += 20 * ms {
		s.Advance(w.now)
	}
	return spans
}

// seed is a pod setup of five seconds, four of them in the plugin's PowerShell, and a crashing teardown, on Windows
// Server 2025.
func seed() etwtest.File {
	const (
		plugin = `\opt\cni\bin\antrea.exe`
		ipam   = `\opt\cni\bin\host-local.exe`
		shell  = `\Windows\System32\WindowsPowerShell\v1.0\powershell.exe`
		get    = `powershell.exe -NoLogo -NoProfile -NonInteractive -Command Get-NetAdapter`
		set    = `powershell.exe -NoLogo -NoProfile -NonInteractive -Command Set-NetIPInterface`
	)
	n := &etwtest.Node{}
	n.Began(100, 2000, 1000, plugin, "antrea.exe")
	n.Began(110, 2004, 2000, ipam, "host-local.exe")
	n.Ended(125, 2004, 0)
	n.Began(130, 2008, 2000, shell, get)
	n.Ended(930, 2008, 0)
	n.Began(940, 2012, 2000, shell, set)
	n.Ended(5040, 2012, 0)
	n.Ended(5100, 2000, 0)
	n.Began(20_000, 2004, 1000, plugin, "antrea.exe") // a reused PID
	n.Ended(20_030, 2004, 0xc0000005)
	return n.File()
}

// Of the seed's plugins.
func told(c etw.Change) []string {
	if !strings.HasPrefix(c.Image, `\Device\HarddiskVolume3\opt\cni\bin\`) {
		return nil
	}
	command := "ADD"
	if c.Created > begins+10*second {
		command = "DEL"
	}
	return []string{
		"CNI_COMMAND=" + command, "CNI_PATH=/Device/HarddiskVolume3/opt/cni/bin", "CNI_IFNAME=eth0",
		"CNI_CONTAINERID=5b1f8e6f2f3f4a0c9d5a7f10c0ffee00", "CNI_NETNS=d8b0a2a5-0c44-4e3e-9a7e-0d2f6f2b7c11",
		"CNI_ARGS=K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0",
	}
}

// `make golden` updates the file.
func TestTheSeed(t *testing.T) {
	tr := readTrace(t, seed().Bytes())
	if len(tr.processes) != 20 || len(tr.decoder.Unknown)+len(tr.decoder.Malformed) > 0 {
		t.Fatalf("%d were decoded, not %v %v", len(tr.processes), tr.decoder.Unknown, tr.decoder.Malformed)
	}
	got := harness.Must(otlpjson.Lines(tell(tr.processes, tr.header, told)))(t)
	const golden = "testdata/seed.otlp.jsonl"
	if *update {
		harness.Check(t, os.WriteFile(golden, got, 0o644))
	}
	want := harness.Must(os.ReadFile(golden))(t)
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the trace gives; if the change is meant: make golden\n%s", golden, got)
	}
	for _, line := range []string{"4.9s of 5s: plugin antrea ran powershell (2 times)", "antrea exited 0xc0000005"} {
		if !bytes.Contains(got, []byte(line)) {
			t.Errorf("nothing says %q", line)
		}
	}
}
