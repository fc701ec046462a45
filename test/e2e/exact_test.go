//go:build linux

package e2e

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

const apart = 200 * time.Microsecond

// shells has what the reference plugins lack: subshells without exec, commands that exec another.
var shells = rig.Script(`
( ( /bin/true ) )
/bin/sh -c '/bin/true; ( ( /bin/cat </dev/null ); : ); exec /bin/true'
x=$(: | /bin/cat)
[ "$CNI_COMMAND" = ADD ] || exec /bin/true
`)

// Twenty pods, eight at a time, over the whole chain: Jaeger has exactly the execs of the kernel's tracepoints.
func TestEveryExecIsInTheTraceUnderItsParent(t *testing.T) {
	chain := []rig.Plugin{
		rig.Bridge(), rig.Portmap(), rig.Firewall(),
		rig.Tuning(map[string]string{"net.core.somaxconn": "500"}), rig.Test("shells"),
	}
	for _, nri := range []bool{true, false} {
		t.Run(fmt.Sprintf("NRI %t", nri), func(t *testing.T) {
			s := setRig(t, true, rig.Options{
				NRIDisabled: !nri,
				Networks:    []rig.Network{{Plugins: chain}},
				Plugins:     map[string][]byte{"shells": shells},
			})
			w := watchTracepoints(t)
			// On a busy machine containerd is slow between CNI and NRI.
			s.startScope(scope.Options{TOML: "[limits]\nsettle = \"30s\"\n"})
			w.around(t)
			s.inParallel(8, 20, func(i int) error {
				return s.rig.PodComesAndGoes(s.ctx, rig.PodOptions{
					Namespace: "shop", Name: fmt.Sprintf("web-%d", i), UID: fmt.Sprintf("uid-%d", i),
					Labels:    map[string]string{"app": "web"},
					HostPorts: []rig.HostPort{{Host: int32(18080 + i), Container: 80}},
				})
			})
			harness.Check(t, s.scope.Stop()) // flushes the queue
			want := cniExecs(w.stop(t), s.rig.ContainerdPID(), s.rig.CNIBinDir())
			all := s.wholeTraces()

			s.sameExecs(want, all)
			s.identified(all, nri)
			s.underContainerd(all, 20)
			if lost := s.losses(); lost > 0 {
				t.Error("cniscope lost events")
			}
			said := strings.Count(s.scope.LogText(), `"feature unavailable" feature=nri`)
			if nri && said != 0 || !nri && said != 1 {
				t.Errorf("the log says %d times that NRI is missing", said)
			}
		})
	}
}

// inParallel runs the first of n tasks alone: two concurrent portmap plugins fail to create chains.
func (s *stage) inParallel(workers, n int, work func(i int) error) {
	s.Helper()
	todo := make(chan int)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for i := range todo {
				if err := work(i); err != nil {
					s.Errorf("pod %d: %v", i, err)
				}
			}
		})
	}
	if err := work(0); err != nil {
		s.Errorf("pod 0: %v", err)
	}
	for i := 1; i < n; i++ {
		todo <- i
	}
	close(todo)
	running.Wait()
	if s.Failed() {
		s.FailNow()
	}
}

func (s *stage) wholeTraces() (all []*span) {
	s.Helper()
	harness.Eventually(s, func() error {
		found, err := s.jaeger.FindTraces(s.ctx, rig.Query{Service: "cniscope"})
		if err != nil {
			return err
		}
		all = flatten(found)
		ids := map[string]bool{}
		for _, x := range all {
			ids[x.trace()+x.id()] = true
		}
		for _, x := range all {
			if x.parent() != "" && !ids[x.trace()+x.parent()] {
				return fmt.Errorf("span %s of %s is an orphan", x.Name, x.resource["service.name"].GetStringValue())
			}
		}
		return nil
	})
	return all
}

func programs(all []*span) []*span {
	found := append(only(all, "plugin", ""), only(all, "command", "")...)
	slices.SortStableFunc(found, func(a, b *span) int { return cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano) })
	return found
}

// sameExecs compares tracepoints with spans, process by process in order.
func (s *stage) sameExecs(want []*ran, all []*span) {
	s.Helper()
	byID, byPID := map[string]*span{}, map[int][]*span{}
	for _, x := range all {
		byID[x.trace()+x.id()] = x
	}
	got := programs(all)
	for _, x := range got {
		byPID[x.pid()] = append(byPID[x.pid()], x)
	}
	var off, between []time.Duration
	for _, e := range want {
		of := byPID[e.pid]
		if len(of) == 0 {
			s.Errorf("%s of process %d has no span", e.file, e.pid)
			continue
		}
		x := of[0]
		byPID[e.pid] = of[1:]
		name := filepath.Base(e.file)
		if x.plugin() {
			name += " " + x.text("cni.command")
		}
		if x.text("process.executable.path") != e.file || x.Name != name {
			s.Errorf("process %d ran %s, its span is %q of %s", e.pid, e.file, x.Name, x.text("process.executable.path"))
		}
		switch above := byID[x.trace()+x.parent()]; {
		case e.parent == nil && above.kind() != "call":
			s.Errorf("containerd's own %s of process %d is under %q", e.file, e.pid, above.Name)
		case e.parent != nil && (above.pid() != e.parent.pid || above.text("process.executable.path") != e.parent.file):
			s.Errorf("%s of process %d is under %q of process %d, its parent is %s of process %d",
				e.file, e.pid, above.Name, above.pid(), e.parent.file, e.parent.pid)
		}
		for _, d := range []time.Duration{e.start.off(x.StartTimeUnixNano), e.end.off(x.EndTimeUnixNano)} {
			off = append(off, d)
			if d.Abs() > apart {
				s.Errorf("%s of process %d: its span is %s off", e.file, e.pid, d)
			}
		}
		between = append(between, time.Duration(e.start.to-e.start.from), time.Duration(e.end.to-e.end.from))
	}
	for pid, extra := range byPID {
		for _, x := range extra {
			s.Errorf("%q of process %d has a span, but no tracepoint reported it", x.Name, pid)
		}
	}
	s.Logf("%d execs, %d spans; spans are off by %s; the readings around them are %s apart", len(want), len(got), spread(off), spread(between))
}

func spread(d []time.Duration) string {
	if len(d) == 0 {
		return "none"
	}
	slices.Sort(d)
	return fmt.Sprintf("%s…%s (median %s)", d[0], d[len(d)-1], d[len(d)/2])
}

func (s *stage) identified(all []*span, nri bool) {
	s.Helper()
	for _, x := range all {
		if x.kind() == "" {
			continue // containerd's
		}
		pod, found := strings.CutPrefix(x.text("k8s.pod.name"), "web-")
		if !found || x.text("k8s.namespace.name") != "shop" || x.text("k8s.pod.uid") != "uid-"+pod || len(x.text("sandbox.id")) != 64 ||
			x.resource["k8s.node.name"].GetStringValue() != "rig-node" {
			s.Errorf("%q does not say whose it is: %v %v", x.Name, x.attrs, x.resource)
		}
		if x.kind() != "call" {
			continue
		}
		_, running := x.attrs["cniscope.sandbox_running"]
		if want := nri && x.Name == "CNI ADD"; running != want || running && !x.attrs["cniscope.sandbox_running"].GetBoolValue() {
			s.Errorf("%s of pod %s says %v of a running sandbox", x.Name, pod, x.attrs["cniscope.sandbox_running"])
		}
		if (x.text("k8s.pod.label.app") == "web") != nri || (x.text("k8s.pod.ip") != "") != nri {
			s.Errorf("%s of pod %s: label %q, address %q", x.Name, pod, x.text("k8s.pod.label.app"), x.text("k8s.pod.ip"))
		}
	}
}

func (s *stage) underContainerd(all []*span, pods int) {
	s.Helper()
	byID := map[string]*span{}
	for _, x := range all {
		byID[x.trace()+x.id()] = x
	}
	calls := map[string]int{}
	for _, x := range only(all, "call", "") {
		calls[x.text("k8s.pod.name")+" "+x.Name+" "+x.text("cni.ifname")]++
		above := byID[x.trace()+x.parent()]
		want := map[string]string{"CNI ADD": "cni.asynchAttach", "CNI DEL": "cni.Remove"}[x.Name]
		if above == nil || above.Name != want || above.resource["service.name"].GetStringValue() != "containerd" {
			s.Errorf("%s %s is under %v, not under containerd's %s", x.Name, x.text("cni.ifname"), above, want)
		} else if x.Name == "CNI ADD" && above.text("cni.ifname") != x.text("cni.ifname") {
			s.Errorf("%s %s is under the span of %s", x.Name, x.text("cni.ifname"), above.text("cni.ifname"))
		}
	}
	for i := range pods {
		for _, call := range []string{"CNI ADD lo", "CNI ADD eth0", "CNI DEL lo", "CNI DEL eth0"} {
			if n := calls[fmt.Sprintf("web-%d %s", i, call)]; n == 0 || n > 1 && strings.HasPrefix(call, "CNI ADD") {
				s.Errorf("pod web-%d has %d spans %s", i, n, call)
			}
		}
	}
}
