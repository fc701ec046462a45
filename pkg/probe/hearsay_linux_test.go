package probe

import (
	"slices"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/symbols"
)

// Whoever passes for a plugin can name any container, and any namespace for it.
func TestAForgerMakesNoEvidenceOfAPodsSandbox(t *testing.T) {
	const one = "5b2919415cea791dd4ddff000f46e4ada5386e0c3147ae17ac5eebb82e008418"
	const foreign, own = "/run/netns/cni-0badcafe", "/run/netns/cni-786877ce"
	plugin := func(in *interior, process event.Process, caller event.Caller, netns string) {
		in.note(event.Event{Body: &event.Exec{
			Process: process, Root: true, InPath: true, Caller: caller, Name: "any",
			Call: &event.Call{Command: "ADD", ContainerID: one, NetNS: netns, IfName: "eth0"},
		}})
		in.attribute(process, &event.Request{Object: event.ObjectLink, Verb: event.VerbAdd, Interface: event.Interface{Name: "veth1a2b3c" + string(process), Kind: "veth"}})
		in.attribute(process, &event.Enter{NetNS: event.Namespace{Key: netns}})
	}
	for _, first := range []bool{true, false} {
		in := newInterior(true, new(symbols.Table))
		if first {
			plugin(in, "f", event.CallerHost, foreign)
		}
		plugin(in, "a", event.CallerRuntime, own)
		if !first {
			plugin(in, "f", event.CallerHost, foreign)
		}
		in.note(event.Event{Body: &event.Exit{Process: "f"}})
		in.sandboxes.Forget(1 << 40) // the pod's plugin still runs
		for text, want := range map[string][]string{foreign: nil, own: {one}, one: {one}, "veth1a2b3ca": {one}, "veth1a2b3cf": nil} {
			if got := in.sandboxes.Mentions(nil, nil, text); !slices.Equal(got, want) {
				t.Errorf("the forger first: %v: %s mentions %v, want %v", first, text, got, want)
			}
		}
		if got := in.sandboxes.Mentions([]event.Namespace{{Key: foreign}}, nil); len(got) != 0 {
			t.Errorf("the forger first: %v: its namespace mentions %v", first, got)
		}
	}
}
