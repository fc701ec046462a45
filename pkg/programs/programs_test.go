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

// The runtime runs loopback, which no configuration names.
func TestLoopbackIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Node{
			Dirs:   func(context.Context) (int, []string, bool) { return 1, []string{"/b"}, true },
			Faults: func(int, []string, []string) []event.Program { return nil },
		})
		var sent []*event.Programs
		go func() {
			_ = s.Run(t.Context(), func(e event.Event) { sent = append(sent, e.Body.(*event.Programs)) })
		}()
		s.Tell(event.Event{Body: &event.Networks{Networks: []event.Network{{Plugins: []event.Plugin{{Type: "bridge"}}}}}})
		synctest.Wait()
		if len(sent) != 1 || !sent[0].Loopback || !slices.Equal(sent[0].Looked, []string{"bridge", "loopback"}) {
			t.Errorf("%+v", sent)
		}
	})
}
