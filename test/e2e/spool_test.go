//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// churn runs and removes pods, four at a time within the given time if possible, and reports each running one.
func (s *stage) churn(pods int, within time.Duration, done func(name string, begin time.Time)) {
	s.Helper()
	var running sync.WaitGroup
	var next atomic.Int64
	start := time.Now()
	for range 4 {
		running.Go(func() {
			for i := next.Add(1); i <= int64(pods); i = next.Add(1) {
				time.Sleep(time.Until(start.Add(within * time.Duration(i) / time.Duration(pods))))
				name, begin := fmt.Sprint("pod-", i), time.Now()
				id, err := s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: name})
				if err != nil {
					s.Error(err)
					return
				}
				done(name, begin)
				if err := s.rig.RemovePod(s.ctx, id); err != nil {
					s.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
}

var kept = regexp.MustCompile(`(?m)^time=(\S+) .*msg="CNI call .*trace_id=([0-9a-f]{32})`)

func keptBy(t *testing.T, one *scope.Scope, until time.Time) map[string]bool {
	t.Helper()
	traces := map[string]bool{}
	for _, m := range kept.FindAllStringSubmatch(one.LogText(), -1) {
		at := harness.Must(time.Parse(time.RFC3339Nano, m[1]))(t)
		if at.Before(until) {
			traces[m[2]] = true
		}
	}
	return traces
}

func outage(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("CNISCOPE_OUTAGE")
	if text == "" {
		return 20 * time.Second
	}
	return harness.Must(time.ParseDuration(text))(t)
}

// During an outage 200 pods come and go and cniscope is killed: every kept operation arrives once.
func TestNothingKeptIsLostInAnOutage(t *testing.T) {
	const pods = 200
	down := outage(t)
	s := setAlone(t)
	addr, dir := harness.Address(t), filepath.Join(t.TempDir(), "spool")
	toml := fmt.Sprintf("[export.otlp]\nendpoint = \"http://%s\"\n[export.spool]\ndir = %q\n", addr, dir)
	first := s.observe(toml)
	up := time.Now().Add(down)

	var ran sync.Map // pods whose whole setup one cniscope observed
	var second *scope.Scope
	var killed, back time.Time
	var count atomic.Int64
	halfway := make(chan struct{})
	var restart sync.WaitGroup
	restart.Go(func() { // the pods continue
		select {
		case <-halfway:
		case <-s.ctx.Done():
			return
		}
		killed = time.Now()
		first.Kill9()
		second = s.observe(toml)
		back = time.Now()
	})
	type extent struct{ begin, end time.Time }
	s.churn(pods, down, func(name string, begin time.Time) {
		ran.Store(name, extent{begin, time.Now()})
		if count.Add(1) == pods/2 {
			close(halfway)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	restart.Wait()
	harness.Eventually(s, func() error { // finished operations are kept
		if n := len(keptBy(t, second, time.Now())); n == 0 {
			return fmt.Errorf("the second cniscope kept nothing")
		}
		return nil
	})
	time.Sleep(time.Until(up))

	// The spool is written shortly after the log, and the kill may come between.
	want := keptBy(t, first, killed.Add(-100*time.Millisecond))
	r := receive(t, addr)
	harness.Eventually(s, func() error {
		for trace := range keptBy(t, second, time.Now()) {
			want[trace] = true
		}
		arrived := map[string]bool{}
		for _, x := range r.got() {
			arrived[x.trace()] = true
		}
		missing := 0
		for trace := range want {
			if !arrived[trace] {
				missing++
			}
		}
		if missing > 0 {
			return fmt.Errorf("%d of %d kept operations have not arrived", missing, len(want))
		}
		return nil
	})
	if n := r.twice(); n > 0 {
		t.Errorf("%d spans arrived more than once", n)
	}
	all := r.got()
	setups := map[string]bool{}
	for _, x := range only(all, "call", "CNI ADD") {
		if x.text("cni.ifname") == "eth0" {
			setups[x.text("k8s.pod.name")] = true
		}
	}
	seen := 0
	ran.Range(func(name, v any) bool {
		e := v.(extent)
		// Unfinished operations were not kept at the kill.
		if e.end.Before(killed.Add(-2*time.Second)) || e.begin.After(back) {
			seen++
			if !setups[name.(string)] {
				t.Errorf("the setup of %s is missing", name)
			}
		}
		return true
	})
	if seen < pods*3/4 {
		t.Errorf("only %d pods were seen whole", seen)
	}
	t.Logf("down for %s: %d operations kept, %d pods seen whole, %d spans arrived, spool of %d bytes", down, len(want), seen, len(all), size(t, dir))

	out, err := exec.CommandContext(s.ctx, program, "show", "--last", "1h", "--pod", fmt.Sprint("shop/pod-", pods), "--config", second.Config()).CombinedOutput()
	if err != nil || !strings.Contains(string(out), fmt.Sprintf("shop/pod-%d  CNI ADD eth0", pods)) || strings.Contains(string(out), "shop/pod-1 ") {
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
