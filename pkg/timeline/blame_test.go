package timeline

import (
	"fmt"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

func owns(pod string) func(*event.Exec) {
	return func(e *event.Exec) { e.Call.Pod = event.Pod{Namespace: "shop", Name: pod} }
}

// Of a wait, the holder's run and call are known.
func TestWhoIsToBlame(t *testing.T) {
	const path = "/run/lock"
	stories{
		"a run of another pod that has a lock on a file": {func(s *story) {
			s.plugin(5, "a", "ADD", "ipam", container("c2"), owns("web-1")).wait(10, 10, "a", event.WaitLock, path).
				plugin(20, "b", "ADD", "bridge").unlock(100, "a", path).wait(30, 100, "b", event.WaitLock, path)
		}, "a since 5 for web-1 in c2, passed 0"},
		"though a command of it had it": {func(s *story) {
			s.plugin(5, "a", "ADD", "portmap", container("c2"), owns("web-1")).command(8, "x", "a", "iptables").
				wait(10, 10, "x", event.WaitLock, path).
				plugin(20, "b", "ADD", "bridge").exit(100, "x").wait(30, 100, "b", event.WaitLock, path)
		}, "a since 5 for web-1 in c2, passed 0"},
		"and others had it after that": {func(s *story) {
			s.plugin(5, "a", "ADD", "ipam", container("c2"), owns("web-1")).wait(10, 10, "a", event.WaitLock, path).
				plugin(6, "c", "ADD", "ipam", container("c3")).plugin(7, "d", "ADD", "ipam", container("c4")).
				plugin(20, "b", "ADD", "bridge").unlock(50, "a", path).wait(25, 50, "c", event.WaitLock, path).exit(70, "c").
				wait(26, 70, "d", event.WaitLock, path).exit(90, "d").wait(30, 90, "b", event.WaitLock, path)
		}, "a since 5 for web-1 in c2, passed 2"},
		"one that has a lock of the kernel": {func(s *story) {
			s.plugin(5, "a", "ADD", "bridge", container("c2"), owns("web-1")).plugin(20, "b", "ADD", "bridge").
				wait(30, 100, "b", event.WaitMutex, "rtnl", heldBy("a", 11, "bridge"))
		}, "a since 5 for web-1 in c2, passed 0"},
		"also if it is over when that is told, and its operation as well": {func(s *story) {
			s.plugin(5, "a", "ADD", "bridge", container("c2"), owns("web-1")).plugin(20, "b", "ADD", "bridge").exit(99, "a").
				tick(20_000).wait(30, 20_001, "b", event.WaitMutex, "rtnl", heldBy("a", 11, "bridge"))
		}, "a since 5 for web-1 in c2, passed 0"},
		"for what an agent runs": {func(s *story) {
			s.plugin(5, "o", "ADD", "bridge", container("c2"), owns("web-1")).plugin(20, "p", "ADD", "net").calls(21, "p", "s1").
				command(22, "b", "a", "ip").wait(30, 100, "b", event.WaitMutex, "rtnl", heldBy("o", 11, "bridge")).exit(101, "b")
		}, "o since 5 for web-1 in c2, passed 0"},
		"not for an agent itself": {func(s *story) {
			s.plugin(5, "o", "ADD", "bridge", container("c2"), owns("web-1")).plugin(20, "p", "ADD", "net").calls(21, "p", "s1").
				wait(30, 100, "a", event.WaitMutex, "rtnl", heldBy("o", 11, "bridge"))
		}, "nobody"},
		"not itself": {func(s *story) {
			s.plugin(20, "b", "ADD", "bridge").command(21, "x", "b", "ip").
				wait(30, 100, "b", event.WaitMutex, "rtnl", heldBy("x", 11, "ip"))
		}, "nobody"},
		"not what is no run": {func(s *story) {
			s.plugin(20, "b", "ADD", "bridge").wait(30, 100, "b", event.WaitLock, path, heldBy("p", 812, "kube-proxy"))
		}, "nobody"},
		"nor one of which it is not known yet what is above it": {func(s *story) {
			s.line.options.Wait = time.Second
			s.plugin(5, "a", "ADD", "bridge", container("c2")).plugin(20, "b", "ADD", "bridge", environment(sampledContext)).
				wait(30, 100, "b", event.WaitMutex, "rtnl", heldBy("a", 11, "bridge")).exit(101, "b").
				at(102, &event.Sandbox{Phase: event.SandboxRunning, ID: "c1"}).tick(110)
		}, "nobody"},
	}.each(t, looked, func(s *story) string {
		got := "nobody"
		for _, op := range s.end().closed {
			everyImage(op, func(im *model.Image) {
				for _, w := range model.Each[*model.Wait](im.Facts) {
					if b := w.Blame; (im.Process == "b" || im.Process == "a") && b != nil {
						got = fmt.Sprintf("%s since %d for %s in %s, passed %d", b.Process, b.Start/ms, b.Pod.Name,
							b.Call.ContainerID, w.Passed)
					}
				}
			})
		}
		return got
	})
}

// Memory of holders is bounded.
func TestSuspectsAreBounded(t *testing.T) {
	s := looked(t)
	for i := range int64(2000) {
		id := fmt.Sprint("c", i)
		s.plugin(i*10, id, "ADD", "bridge", container(id)).exit(i*10+1, id).
			at(i*10+2, &event.Sandbox{Phase: event.SandboxRunning, ID: id}).tick(i*10 + 3)
	}
	if n := held(s.line.locks, "suspects", "by"); n > 256 || held(s.line.locks, "suspects", "order") != n {
		t.Errorf("%d suspects", n)
	}
	for _, key := range part(s.line.locks, "suspects", "by").MapKeys() {
		one := part(s.line.locks, "suspects", "by").MapIndex(key).Elem()
		if !one.FieldByName("op").IsNil() || !one.FieldByName("run").IsNil() {
			t.Fatal("an operation that is over is still held")
		}
	}
	s = looked(t).plugin(5, "o", "ADD", "bridge").plugin(20, "b", "ADD", "bridge", for2)
	for range 9 {
		s.wait(30, 39, "b", event.WaitMutex, "rtnl", heldBy("o", 11, "bridge"))
	}
	harness.Equal(t, held(s.line.open[0], "suspects"), 1, "suspects of one run")
}
