package timeline

import (
	"fmt"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func inNetNS(key string) func(*event.Exec) { return func(e *event.Exec) { e.NetNS.Key = key } }

func (s *story) enter(at int64, process, key string) *story {
	return s.at(at, &event.Enter{Process: event.Process(process), NetNS: event.Namespace{Key: key, Label: key}})
}

func (s *story) connects(at int64, key string) *story {
	return s.at(at, &event.FirstConnection{
		NetNS: event.Namespace{Key: key}, Local: "10.22.0.5:4000",
		Remote: "10.22.0.1:53",
	})
}

// In namespace "pod", from 0 to 50.
func setUp(s *story) *story {
	return s.plugin(0, "l", "ADD", "loopback", on("lo"), inNetNS("host")).exit(4, "l").
		plugin(0, "b", "ADD", "bridge", inNetNS("host")).enter(1, "b", "pod").enter(2, "b", "host").exit(50, "b")
}

func TestTheFirstConnectionOfAPod(t *testing.T) {
	stories{ // what is said of its call, and afterwards
		"while the operation is open, its call knows": {
			func(s *story) { setUp(s).connects(70, "pod").connects(90, "pod").tick(2000) },
			"at 70 []",
		},
		"after that, it is said once": {
			func(s *story) { setUp(s).tick(2000).connects(9000, "pod").connects(9001, "pod").tick(70_000) },
			"never [eth0 50-9000]",
		},
		"a request in the namespace shows whose it is, too": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge", inNetNS("host")).
				ask(1, 1, "b", "RTM_NEWADDR", func(r *event.Request) { r.NetNS.Key = "pod" }).exit(50, "b").connects(70, "pod").
				tick(2000)
		}, "at 70 []"},
		"a minute later, too": {
			func(s *story) { setUp(s).tick(2000).tick(60_050).connects(60_050, "pod") },
			"never [eth0 50-60050]",
		},
		"later than a minute nobody wants to know": {
			func(s *story) { setUp(s).tick(2000).connects(60_051, "pod") },
			"never []",
		},
		"the namespace of the runtime is nobody's": {
			func(s *story) { setUp(s).connects(70, "host").tick(2000).connects(9000, "host") },
			"never []",
		},
		"nor is one that a plugin without a namespace enters": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").enter(1, "b", "pod").exit(50, "b").connects(70, "pod").tick(2000)
		}, "never []"},
		"nor the one in which the first plugin of a call runs": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge", inNetNS("host")).command(1, "x", "b", "ip").enter(2, "x", "host").
				exit(3, "x").exit(50, "b").connects(70, "host").tick(2000)
		}, "never []"},
		"nor is what a plugin enters after four others": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge", inNetNS("host"))
			for _, key := range []string{"p1", "p2", "p3", "p4", "p5"} {
				s.enter(1, "b", key)
			}
			s.exit(50, "b").connects(70, "p5").tick(2000)
		}, "never []"},
		"but the fourth may be the pod's": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge", inNetNS("host"))
			for _, key := range []string{"p1", "p2", "p3", "p4"} {
				s.enter(1, "b", key)
			}
			s.exit(50, "b").connects(70, "p4").tick(2000)
		}, "at 70 []"},
		"nor is one in which something is torn down": {func(s *story) {
			s.plugin(0, "b", "DEL", "bridge", inNetNS("host")).enter(1, "b", "pod").exit(50, "b").connects(70, "pod").tick(2000)
		}, "never []"},
	}.each(t, looked, func(s *story) string {
		got := "never"
		for _, call := range s.closed[0].Calls {
			if call.First != nil {
				got = fmt.Sprint("at ", call.First.At/ms)
			}
		}
		var said []string
		for _, c := range s.line.Pods().Connected() {
			said = append(said, fmt.Sprintf("%s %d-%d", c.IfName, c.End/ms, c.At/ms))
		}
		return fmt.Sprint(got, " ", said)
	})
}

func TestWhatNobodyWantsToKnowIsForgotten(t *testing.T) {
	s := setUp(looked(t)).tick(2000)
	s.line.Pods().Forget(s.closed[0].Key())
	harness.Equal(t, held(s.line.pods, "firsts", "namespaces"), 0, "namespaces after the operation was dropped")
	s = setUp(looked(t)).tick(2000).tick(61_000)
	harness.Equal(t, held(s.line.pods, "firsts", "namespaces"), 0, "namespaces after a minute")
	s = looked(t)
	for i := range 100 {
		s.plugin(0, fmt.Sprint("b", i), "ADD", "bridge", container(fmt.Sprint(i)), inNetNS("host")).
			enter(1, fmt.Sprint("b", i), fmt.Sprint("pod", i)).exit(2, fmt.Sprint("b", i)).tick(int64(2000 * (i + 1)))
	}
	if n := held(s.line.pods, "firsts", "namespaces"); n > 8 {
		t.Errorf("%d namespaces", n)
	}
}

func TestConcurrentCalls(t *testing.T) {
	s := tell(t).
		plugin(0, "a", "ADD", "bridge", container("c1")).
		plugin(10, "b", "ADD", "bridge", container("c2")).
		plugin(20, "c", "ADD", "bridge", container("c3")).exit(25, "b").
		plugin(30, "d", "ADD", "bridge", container("c4")).exit(40, "c").exit(40, "d").exit(50, "a").
		plugin(50, "e", "ADD", "bridge", container("c5")).exit(60, "e").tick(5000)
	got := ""
	for _, op := range s.closed {
		got += fmt.Sprint(op.ContainerID, ":", op.Calls[0].Concurrent, " ")
	}
	harness.Equal(t, got, "c1:2 c2:2 c3:2 c4:2 c5:0 ")
	// An ended call counts too; old ones are dropped.
	s = tell(t).plugin(0, "a", "ADD", "bridge").plugin(1, "b", "ADD", "bridge", container("c2")).exit(2, "b").tick(3000).
		exit(4000, "a").tick(9000)
	if s.closed[0].Calls[0].Concurrent != 1 || s.closed[1].Calls[0].Concurrent != 1 || len(s.line.past.extents) != 0 {
		t.Errorf("%d, %d, %v", s.closed[0].Calls[0].Concurrent, s.closed[1].Calls[0].Concurrent, s.line.past.extents)
	}
}
