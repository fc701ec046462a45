package programs

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

// It looks when a call of the runtime begins, in the directory of its plugin, and sends what has changed.
func TestPluginsAreLookedAtWhenACallBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		var faults []event.Program
		s := New(Node{
			Dirs: func(context.Context) (int, []string, bool) { return 0, nil, false },
			Faults: func(_ int, dirs, names []string) []event.Program {
				asked = append(append([]string{}, dirs...), names...)
				return faults
			},
		})
		var sent []*event.Programs
		done := make(chan error, 1)
		go func() {
			done <- s.Run(t.Context(), func(e event.Event) { sent = append(sent, e.Body.(*event.Programs)) })
		}()
		call := &event.Exec{Root: true, InPath: true, File: "/opt/cni/bin/bridge", Call: &event.Call{Command: "ADD"}}
		s.Tell(event.Event{Body: &event.Networks{Networks: []event.Network{{Plugins: []event.Plugin{{Type: "bridge", IPAM: "host-local"}, {Type: "portmap"}}}}}})
		for _, other := range []*event.Exec{
			{InPath: true, File: "/x/delegate", Call: call.Call},
			{Root: true, File: "/x/command"},
			{Root: true, InPath: true, File: "/x/theirs", Call: call.Call, Caller: event.CallerHost},
		} {
			s.Tell(event.Event{Body: other})
		}
		synctest.Wait()
		if len(asked) > 0 {
			t.Errorf("before a call of the runtime: %q", asked)
		}
		s.Tell(event.Event{Body: call})
		synctest.Wait()
		if want := []string{"/opt/cni/bin", "bridge", "host-local", "portmap"}; !slices.Equal(asked, want) || len(sent) != 1 || len(sent[0].Faults) != 0 {
			t.Errorf("%q, %d sent", asked, len(sent))
		}
		faults = []event.Program{{Name: "portmap", Fault: event.FaultAbsent}}
		for range 5 { // at once
			s.Tell(event.Event{Body: call})
		}
		time.Sleep(2 * pace)
		synctest.Wait()
		if len(sent) != 2 || sent[1].Of("portmap") == nil || !sent[1].Sound("bridge") || sent[1].Sound("ptp") {
			t.Errorf("%d sent: %+v", len(sent), sent[len(sent)-1])
		}
	})
}

// The runtime runs loopback, which no configuration need name. It is asked again when it registers or changes, and when
// a call begins after a question without an answer, which changes nothing.
func TestLoopbackIsLookedAt(t *testing.T) {
	type answer struct{ known, loopback bool }
	yes, no, silent := answer{true, true}, answer{true, false}, answer{}
	networks := func(names ...string) event.Body {
		n := event.Network{}
		for _, name := range names {
			n.Plugins = append(n.Plugins, event.Plugin{Type: name})
		}
		return &event.Networks{Networks: []event.Network{n}}
	}
	bridge := networks("bridge")
	registered, changed := &event.Registered{PID: 812}, &event.Runtime{Name: "containerd", Version: "2"}
	call := &event.Exec{Root: true, InPath: true, File: "/b/bridge", Call: &event.Call{Command: "ADD"}}
	both := []string{"bridge", "loopback"}
	for name, test := range map[string]struct {
		events   []event.Body
		answers  []answer
		looked   []string
		loopback bool
		asked    int
	}{
		"needed":                           {[]event.Body{bridge}, []answer{yes}, both, true, 1},
		"not needed":                       {[]event.Body{bridge}, []answer{no}, both[:1], false, 1},
		"needed, and a file names it":      {[]event.Body{networks(both...)}, []answer{yes}, both, true, 1},
		"only a file names it":             {[]event.Body{networks(both...)}, []answer{no}, both, false, 1},
		"until the runtime restarts":       {[]event.Body{bridge, registered}, []answer{yes, no}, both[:1], false, 2},
		"since the runtime changed":        {[]event.Body{bridge, changed}, []answer{no, yes}, both, true, 2},
		"the last question has no answer":  {[]event.Body{bridge, registered}, []answer{yes, silent}, both, true, 2},
		"the first question has no answer": {[]event.Body{bridge, call}, []answer{silent, yes}, both, true, 2},
		"calls ask once":                   {[]event.Body{bridge, call, call}, []answer{silent, silent}, both[:1], false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				s := New(Node{
					Dirs: func(context.Context) (int, []string, bool) {
						a := test.answers[asked]
						if asked++; !a.known {
							return 0, nil, false
						}
						return 1, []string{"/b"}, a.loopback
					},
					Faults: func(int, []string, []string) []event.Program { return nil },
				})
				var last *event.Programs
				go func() {
					_ = s.Run(t.Context(), func(e event.Event) { last = e.Body.(*event.Programs) })
				}()
				for _, b := range test.events {
					s.Tell(event.Event{Body: b})
					time.Sleep(2 * pace)
				}
				synctest.Wait()
				if last == nil || !slices.Equal(last.Looked, test.looked) || last.Loopback != test.loopback || asked != test.asked {
					t.Errorf("asked %d times: %+v", asked, last)
				}
			})
		})
	}
}
