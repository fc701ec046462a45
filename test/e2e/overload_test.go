//go:build linux

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

const (
	// overload is the duration of TestOverload's flood; without it the test is skipped, because it asserts times.
	overload  = "CNISCOPE_OVERLOAD"
	flooding  = "CNISCOPE_FLOOD"
	perSecond = 200_000
)

// floodFor queries an interface's index perSecond times per second, and reports start, end and rate.
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
	end := time.Now()
	file := os.Getenv(flooding + "_REPORT")
	if err := os.WriteFile(file+".new", fmt.Appendln(nil, begin.UnixNano(), end.UnixNano(), int(float64(n)/end.Sub(begin).Seconds())), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

type flood struct {
	began, ended time.Time
	rate         int
	looks        []look
	before, gaps gaps // of ticks, before and after
}

type look struct {
	at         time.Time
	overloaded bool
}

// gaps is a histogram of the time between ticks, in seconds.
type gaps struct {
	upTo map[string]float64
	all  float64
}

func (s *stage) watch(ctx context.Context, seen chan<- []look) {
	var looks []look
	defer func() { seen <- looks }()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for ctx.Err() == nil {
		at := time.Now()
		_, body := s.scope.Ask(s, "/readyz")
		looks = append(looks, look{at, strings.Contains(body, "\noverloaded: ")})
		<-every.C
	}
}

func (s *stage) gaps() gaps {
	_, body := s.scope.Ask(s, "/metrics")
	g := gaps{upTo: map[string]float64{}}
	for _, found := range regexp.MustCompile(`(?m)^cniscope_tick_gap_seconds_bucket\{le="([^"]+)"\} (\S+)`).FindAllStringSubmatch(body, -1) {
		n := harness.Must(strconv.ParseFloat(found[2], 64))(s.T)
		g.upTo[found[1]] = n
		g.all = max(g.all, n)
	}
	return g
}

// Beside a plugin with 200,000 events per second only the flooding pod is incomplete.
func TestOverload(t *testing.T) {
	text := os.Getenv(overload)
	if text == "" {
		t.Skip("make test-overload")
	}
	long := harness.Must(time.ParseDuration(text))(t)
	harness.Root(t)
	s := &stage{T: t, ctx: harness.Context(t)}
	self := harness.Must(os.Executable())(t)
	report := filepath.Join(t.TempDir(), "report")
	// The plugin identifies the flooding pod by name.
	script := rig.Script(fmt.Sprintf("case $CNI_COMMAND$CNI_ARGS in ADD*NAME=flood*) %[1]s=%[2]s %[1]s_REPORT=%[3]s %[4]s;; esac", flooding, long, report, self))
	s.startRig(rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(rig.Conf{"ipMasq": false}), rig.Test("busy")}}},
		Plugins:  map[string][]byte{"busy": script},
	})
	file := filepath.Join(t.TempDir(), "otlp.jsonl")
	s.scope = harness.Must(scope.Start(s.ctx, s.rig, scope.Options{
		Program: program, TOML: patient + whole + served + fmt.Sprintf("[export.file]\npath = %q\n", file),
	}))(t)
	t.Cleanup(func() {
		if _ = s.scope.Stop(); t.Failed() {
			t.Logf("cniscope's log:\n%s", s.scope.LogText())
		}
	})

	f := flood{before: s.gaps()}
	watching, unwatch := context.WithCancel(s.ctx)
	watched := make(chan []look, 1)
	go s.watch(watching, watched)
	over := s.rig.BeginPod(s.ctx, rig.PodOptions{Name: "flood"})
	pods := s.podsUntil(func() bool {
		_, err := os.Stat(report)
		return err == nil || len(over) > 0
	})
	f.gaps = s.gaps()
	harness.Check(t, <-over)
	f.read(t, report)
	harness.Until(t, "overload is over", func() bool {
		_, body := s.scope.Ask(s, "/readyz")
		return !strings.Contains(body, "\noverloaded: ")
	})
	unwatch()
	f.looks = <-watched
	said := strings.Count(s.scope.LogText(), "overloaded")
	lost := s.lostBy()
	harness.Check(t, s.scope.Stop())

	t.Logf("%d events a second for %s; %d pods came and went meanwhile; lost: %v", f.rate, f.ended.Sub(f.began).Round(time.Millisecond), pods, lost)
	f.judge(t)
	s.wholePods(file, pods)
	if len(lost) != 1 || lost["over_quota"] == 0 {
		t.Errorf("something else was lost than what was over quota")
	}
	harness.Equal(t, said, 2, "lines of the log speak of it")
}

func (s *stage) podsUntil(over func() bool) int {
	var last atomic.Int64
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			for !over() {
				name := fmt.Sprint("web-", last.Add(1)-1)
				if err := s.rig.PodComesAndGoes(s.ctx, rig.PodOptions{Name: name}); err != nil {
					s.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	running.Wait()
	return int(last.Load())
}

func (s *stage) lostBy() map[string]float64 {
	_, body := s.scope.Ask(s, "/metrics")
	lost := map[string]float64{}
	for _, found := range regexp.MustCompile(`(?m)^cniscope_events_lost_total\{reason="([^"]+)",source="probe"\} (\S+)`).FindAllStringSubmatch(body, -1) {
		n, err := strconv.ParseFloat(found[2], 64)
		if harness.Check(s.T, err); n > 0 {
			lost[found[1]] = n
		}
	}
	return lost
}

func (f *flood) read(t *testing.T, report string) {
	t.Helper()
	data := harness.Must(os.ReadFile(report))(t)
	var began, ended int64
	if _, err := fmt.Sscan(string(data), &began, &ended, &f.rate); err != nil {
		t.Fatalf("%q: %v", data, err)
	}
	f.began, f.ended = time.Unix(0, began), time.Unix(0, ended)
}

func (f *flood) judge(t *testing.T) {
	t.Helper()
	var first time.Time
	silent := 0
	for _, l := range f.looks {
		switch {
		case l.overloaded && first.IsZero():
			first = l.at
		case !l.overloaded && !first.IsZero() && l.at.Before(f.ended):
			silent++
		}
	}
	bounds := slices.SortedFunc(maps.Keys(f.gaps.upTo), func(a, b string) int {
		x, _ := strconv.ParseFloat(a, 64)
		y, _ := strconv.ParseFloat(b, 64)
		return cmp.Compare(x, y)
	})
	all := f.gaps.all - f.before.all
	share := func(bound string) float64 { return (f.gaps.upTo[bound] - f.before.upTo[bound]) / all }
	var distribution []string
	for _, b := range bounds {
		distribution = append(distribution, fmt.Sprintf("%.2f%% up to %ss", 100*share(b), b))
	}
	t.Logf("overloaded after %s, in %d looks; %.0f gaps between ticks: %s", first.Sub(f.began).Round(time.Millisecond), len(f.looks), all, strings.Join(distribution, ", "))
	if all == 0 {
		t.Error("time stands still")
	}
	if first.IsZero() || first.After(f.ended) {
		t.Error("the loss is not reported during the flood")
	}
	if silent > 0 {
		t.Errorf("%d times during the flood /readyz said nothing of it", silent)
	}
}

// wholePods checks that 99 % of the pods have whole traces, and the flooding one has not.
func (s *stage) wholePods(file string, pods int) {
	s.Helper()
	calls, plugins := map[string]map[string]bool{}, map[string]map[string]bool{}
	partial := map[string]string{}
	s.eachSpan(file, func(x ptrace.Span, text func(string) string) {
		pod := text("k8s.pod.name")
		for kind, of := range map[string]map[string]map[string]bool{"call": calls, "run": plugins, "delegate": plugins} {
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
