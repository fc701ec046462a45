//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

const (
	// overload says for how long TestOverload floods; without it, it is skipped: what it
	// asserts are times.
	overload = "CNISCOPE_OVERLOAD"
	// flooding says so to the plugin's program, which is this test.
	flooding = "CNISCOPE_FLOOD"
	// perSecond is how many events it makes.
	perSecond = 200_000
)

// floodFor asks the kernel for the number of an interface, perSecond times a second, and
// writes how often it did to standard error.
func floodFor(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	r, err := unix.NewIfreq("lo")
	begin, n := time.Now(), 0
	for err == nil && time.Since(begin) < d {
		for range perSecond / 1000 {
			if err = unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, r); err != nil {
				return err
			}
			n++
		}
		time.Sleep(time.Until(begin.Add(time.Duration(n) * time.Second / perSecond)))
	}
	return os.WriteFile(os.Getenv(flooding+"_REPORT"), fmt.Appendf(nil, "%d", int(float64(n)/time.Since(begin).Seconds())), 0o600)
}

// overloaded is what a recording says of a flood.
type overloaded struct {
	began  int64 // when the plugin that floods was started
	lost   int64 // when that was reported first
	root   event.Process
	ticks  []int64 // when
	lags   time.Duration
	cut    uint64            // of the flood
	others map[string]uint64 // what others lost
	missed uint64            // what the recording has not
}

func (o *overloaded) take(e event.Event, file string) {
	switch b := e.Body.(type) {
	case *event.Exec:
		if b.Root && o.root == "" && b.Call != nil && b.Call.Command == "ADD" && b.Call.Pod.Name == "flood" && strings.HasSuffix(b.File, file) {
			o.began, o.root = e.Time, b.Process
		}
	case *event.Tick:
		o.ticks = append(o.ticks, e.Time+b.Lag)
		o.lags = max(o.lags, time.Duration(b.Lag))
	case *event.Lost:
		if b.Process == o.root && o.root != "" {
			if o.cut == 0 {
				o.lost = e.Time
			}
			o.cut += b.Count
			return
		}
		if b.Reason == "reader too slow" { // that is this test
			o.missed += b.Count
			return
		}
		o.others[b.Reason] += b.Count
	}
}

// One plugin makes 200,000 events a second while 100 pods come and go: time goes on, it alone
// pays, and it is said.
func TestOverload(t *testing.T) {
	text := os.Getenv(overload)
	if text == "" {
		t.Skip("make test-overload")
	}
	long, err := time.ParseDuration(text)
	check(t, err)
	const pods = 100
	self, err := os.Executable()
	check(t, err)
	if os.Geteuid() != 0 {
		t.Skip("needs root: a rig makes namespaces, mounts and links")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*long+5*time.Minute)
	defer cancel()
	s := &stage{T: t, ctx: ctx}
	reportFile := filepath.Join(t.TempDir(), "rate")
	// The pod that floods is told by its name, which its plugins get from the runtime.
	script := rig.Script(fmt.Sprintf("case $CNI_COMMAND$CNI_ARGS in ADD*NAME=flood*) %[1]s=%[2]s %[1]s_REPORT=%[3]s %[4]s;; esac", flooding, long, reportFile, self))
	s.rig, err = rig.Start(s.ctx, rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(rig.Conf{"ipMasq": false}), rig.Test("busy")}}},
		Plugins:  map[string][]byte{"busy": script},
		Log:      slog.New(slog.DiscardHandler),
	})
	check(t, err)
	t.Cleanup(func() { check(t, s.rig.Close()) })
	file := filepath.Join(t.TempDir(), "otlp.jsonl")
	s.scope, err = scope.Start(s.ctx, s.rig, scope.Options{
		Program: program, TOML: patient + whole + served + fmt.Sprintf("[export.file]\npath = %q\nmax_bytes = \"4GiB\"\n", file),
	})
	check(t, err)
	t.Cleanup(func() {
		if _ = s.scope.Stop(); t.Failed() {
			t.Logf("cniscope's log:\n%s", s.scope.LogText())
		}
	})
	seen := overloaded{others: map[string]uint64{}}
	recorded := make(chan error, 1)
	stream, err := control.Client{Dir: filepath.Join(s.rig.Dir(), "run")}.Record(s.ctx)
	check(t, err)
	go func() { recorded <- readAll(stream, func(e event.Event) { seen.take(e, "busy") }) }()

	flooded := make(chan error, 1)
	go func() {
		_, err := s.rig.RunPod(s.ctx, rig.PodOptions{Name: "flood"})
		flooded <- err
	}()
	s.eventually(func() error {
		if _, body := s.ask("/readyz"); !strings.Contains(body, "\noverloaded: ") {
			return fmt.Errorf("readyz: %q", body)
		}
		return nil
	})
	t.Log("overloaded; the pods come")
	var done atomic.Int64
	for begin := time.Now(); len(flooded) == 0 || done.Load() == 0; {
		batch := int(done.Load())
		if batch < pods {
			s.inParallel(2, 10, func(i int) error { return s.comeAndGo(fmt.Sprint("web-", batch+i)) })
			done.Add(10)
		} else {
			time.Sleep(100 * time.Millisecond)
		}
		_, body := s.ask("/readyz")
		if len(flooded) == 0 && !strings.Contains(body, "\noverloaded: ") {
			t.Errorf("readyz during the flood: %q", body)
		}
		if batch < pods {
			t.Logf("%s: %d pods", time.Since(begin).Round(time.Second), done.Load())
		}
	}
	during := int(done.Load())
	check(t, <-flooded)
	time.Sleep(2 * time.Second)
	if _, body := s.ask("/readyz"); strings.Contains(body, "overloaded") {
		t.Errorf("readyz 2 s after it: %q", body)
	}
	for i := during; i < pods; i++ { // on a machine that is too slow for all of them
		check(t, s.comeAndGo(fmt.Sprint("web-", i)))
	}
	check(t, s.scope.Stop())
	check(t, <-recorded)

	rate, _ := os.ReadFile(reportFile)
	t.Logf("%s events a second for %s; %d pods meanwhile, %d afterwards", rate, long, during, pods-during)
	seen.judge(t)
	s.wholePods(file, pods)
	// A machine with much else to do may lag once more by itself.
	if n := strings.Count(s.scope.LogText(), "overloaded"); n < 2 || n > 6 {
		t.Errorf("%d lines of the log speak of it", n)
	}
}

func (s *stage) comeAndGo(name string) error {
	id, err := s.rig.RunPod(s.ctx, rig.PodOptions{Name: name})
	if err == nil {
		err = s.rig.RemovePod(s.ctx, id)
	}
	return err
}

func readAll(stream io.ReadCloser, take func(event.Event)) error {
	defer stream.Close()
	r, err := record.NewReader(stream)
	for err == nil {
		var e event.Event
		if e, err = r.Next(); err == nil {
			take(e)
		}
	}
	var cut *record.TruncatedError
	if errors.Is(err, io.EOF) || errors.As(err, &cut) {
		return nil
	}
	return err
}

// judge compares with what is promised.
func (o *overloaded) judge(t *testing.T) {
	t.Helper()
	var gaps []time.Duration
	for i := 1; i < len(o.ticks); i++ {
		if o.ticks[i-1] >= o.began {
			gaps = append(gaps, time.Duration(o.ticks[i]-o.ticks[i-1]))
		}
	}
	if len(gaps) == 0 || o.cut == 0 {
		t.Fatalf("%d ticks, %d events of the flood cut", len(o.ticks), o.cut)
	}
	slices.Sort(gaps)
	p99, most := gaps[len(gaps)*99/100], gaps[len(gaps)-1]
	first := time.Duration(o.lost - o.began)
	t.Logf("%d ticks: gaps of %s at the median, %s at p99, %s at most; the longest lag %s; %d events of the flood cut, reported first after %s; others lost %v; %d events are not in the recording",
		len(gaps), gaps[len(gaps)/2], p99, most, o.lags, o.cut, first, o.others, o.missed)
	if p99 > 250*time.Millisecond || most > time.Second {
		t.Error("time stands still")
	}
	if first > time.Second {
		t.Error("the loss is reported late")
	}
	if len(o.others) > 0 {
		t.Error("others lost events, too")
	}
}

// wholePods checks that of 100 pods 99 have whole traces.
func (s *stage) wholePods(file string, pods int) {
	s.Helper()
	calls, plugins := map[string]map[string]bool{}, map[string]map[string]bool{}
	partial := map[string]string{}
	s.eachSpan(file, func(x ptrace.Span) {
		text := func(key string) string { v, _ := x.Attributes().Get(key); return v.Str() }
		pod := text("k8s.pod.name")
		for kind, of := range map[string]map[string]map[string]bool{"call": calls, "plugin": plugins} {
			if text("cniscope.kind") != kind {
				continue
			}
			if of[pod] == nil {
				of[pod] = map[string]bool{}
			}
			of[pod][strings.TrimSpace(x.Name()+" "+text("cni.ifname"))] = true
		}
		if why := text("cniscope.partial_reason"); why != "" {
			partial[pod] = why
		}
	})
	bad := 0
	for i := range pods {
		pod := fmt.Sprint("web-", i)
		switch {
		case partial[pod] != "":
			s.Logf("%s is partial: %s", pod, partial[pod])
		case len(calls[pod]) != 4 || len(plugins[pod]) < 6:
			s.Logf("%s has %v and %v", pod, calls[pod], plugins[pod])
		default:
			continue
		}
		bad++
	}
	s.Logf("%d of %d pods have whole traces; the one that floods is partial: %s", pods-bad, pods, partial["flood"])
	if bad*100 > pods {
		s.Error("too many are not whole")
	}
	if !strings.Contains(partial["flood"], "over quota") {
		s.Error("the one that floods does not say that it is partial")
	}
}
