//go:build linux

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/spool"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

func setAlone(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, ctx: harness.Context(t)}
	s.startRig(rig.Options{})
	return s
}

const verbose = "[slow]\ncall = \"1us\"\n[sampling]\nper_second = 0\n" + quick

func (s *stage) observe(toml string) *scope.Scope {
	s.Helper()
	return scope.Observe(s.ctx, s, s.rig, scope.Options{Program: program, TOML: verbose + toml})
}

// churn runs and removes pods while more returns true, up to four at a time, and starts at most one per interval.
func (s *stage) churn(name string, every time.Duration, more func(i int64) bool) {
	s.Helper()
	var running sync.WaitGroup
	var next atomic.Int64
	start := time.Now()
	for range 4 {
		running.Go(func() {
			for i := next.Add(1); more(i); i = next.Add(1) {
				time.Sleep(time.Until(start.Add(every * time.Duration(i))))
				if err := s.rig.PodComesAndGoes(s.ctx, rig.PodOptions{Namespace: "shop", Name: fmt.Sprint(name, i)}); err != nil {
					s.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
}

var logged = regexp.MustCompile(`(?m)^time=.* msg="CNI call .*trace_id=([0-9a-f]{32})`)

func loggedBy(one *scope.Scope) []string {
	var traces []string
	for _, m := range logged.FindAllStringSubmatch(one.LogText(), -1) {
		traces = append(traces, m[1])
	}
	return traces
}

// spooled returns the spans of a spool. Another process may append.
func spooled(dir string) ([]*span, error) {
	var all []*tracepb.ResourceSpans
	for op, err := range spool.Read(dir, time.Time{}) {
		if err != nil {
			return nil, err
		}
		var data tracepb.TracesData
		if err := proto.Unmarshal(op.Data, &data); err != nil {
			return nil, err
		}
		all = append(all, data.GetResourceSpans()...)
	}
	return flatten(all), nil
}

func traces(all []*span) (ids []string) {
	for _, x := range all {
		ids = append(ids, x.trace())
	}
	return ids
}

func setups(all []*span) (pods []string) {
	for _, x := range only(all, "call", "CNI ADD") {
		if x.text("cni.ifname") == "eth0" {
			pods = append(pods, x.text("k8s.pod.name"))
		}
	}
	return pods
}

// lacks returns an error that names those of want that are not in have.
func lacks(have, want []string) error {
	is := map[string]bool{}
	for _, x := range have {
		is[x] = true
	}
	if missing := slices.DeleteFunc(slices.Clone(want), func(x string) bool { return is[x] }); len(missing) > 0 {
		return fmt.Errorf("%d of %d are missing: %s", len(missing), len(want), missing)
	}
	return nil
}

func outage(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("CNISCOPE_OUTAGE")
	if text == "" {
		return 20 * time.Second
	}
	return harness.Must(time.ParseDuration(text))(t)
}

// During an outage 200 pods come and go, and others while cniscope is killed: every kept operation arrives once.
func TestNothingKeptIsLostInAnOutage(t *testing.T) {
	const pods = 200
	down := outage(t)
	s := setAlone(t)
	addr, dir := harness.Address(t), filepath.Join(t.TempDir(), "spool")
	toml := fmt.Sprintf("[export.otlp]\nendpoint = \"http://%s\"\n[export.spool]\ndir = %q\n", addr, dir)
	first := s.observe(toml)
	up := time.Now().Add(down)

	half := func(i int64) bool { return i <= pods/2 }
	var before, after []string
	for i := range pods / 2 {
		before = append(before, fmt.Sprint("before-", i+1))
		after = append(after, fmt.Sprint("after-", i+1))
	}
	s.churn("before-", down/pods, half)
	if t.Failed() {
		t.FailNow()
	}
	var others sync.WaitGroup
	var begun atomic.Int64
	restarted, over := context.WithCancel(s.ctx)
	others.Go(func() {
		s.churn("during-", down/pods, func(i int64) bool { begun.Store(i); return restarted.Err() == nil })
	})
	defer others.Wait()
	defer over()
	var kept []string
	said := loggedBy(first)
	harness.Eventually(s, func() error {
		all, err := spooled(dir)
		kept = traces(all)
		if begun.Load() <= 4 {
			return errors.New("no other pod has come and gone")
		}
		return cmp.Or(err, lacks(kept, said), lacks(setups(all), before))
	})
	first.Kill9()
	second := s.observe(toml)
	over()
	others.Wait()
	s.churn("after-", down/pods, half)
	time.Sleep(time.Until(up))

	r := receive(t, addr)
	harness.Eventually(s, func() error {
		all := r.got()
		return cmp.Or(lacks(traces(all), slices.Concat(kept, loggedBy(second))), lacks(setups(all), slices.Concat(before, after)))
	})
	if n := r.twice(); n > 0 {
		t.Errorf("%d spans arrived more than once", n)
	}
	t.Logf("down for %s: %d spans kept at the kill, %d arrived, spool of %d bytes",
		down, len(kept), len(r.got()), size(t, dir))

	out, err := exec.CommandContext(s.ctx, program, "show", "--last", "1h", "--pod", "shop/after-100", "--config", second.Config()).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "shop/after-100  CNI ADD eth0") || strings.Contains(string(out), "shop/after-1 ") {
		t.Errorf("show --last: %v\n%s", err, out)
	}
}

func size(t *testing.T, dir string) (n int64) {
	t.Helper()
	files := harness.Must(filepath.Glob(filepath.Join(dir, "*.segment")))(t)
	for _, file := range files {
		info := harness.Must(os.Stat(file))(t)
		n += info.Size()
	}
	return n
}
