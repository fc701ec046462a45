package decode

import (
	"slices"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
)

func TestAForgerMakesNoEvidenceOfAPodsSandbox(t *testing.T) {
	const one = "5b2919415cea791dd4ddff000f46e4ada5386e0c3147ae17ac5eebb82e008418"
	const foreign, own = "/run/netns/cni-0badcafe", "/run/netns/cni-786877ce"
	plugin := func(d *Decoder, process event.Process, caller event.Caller, netns string) {
		d.note(event.Event{Body: &event.Exec{
			Process: process, Root: true, InPath: true, Caller: caller, Name: "any",
			Call: &event.Call{Command: "ADD", ContainerID: one, NetNS: netns, IfName: "eth0"},
		}})
		d.attribute(process, &event.Request{Object: event.ObjectLink, Verb: event.VerbAdd, Interface: event.Interface{Name: "veth1a2b3c" + string(process), Kind: "veth"}})
		d.attribute(process, &event.Enter{NetNS: event.Namespace{Key: netns}})
	}
	for _, first := range []bool{true, false} {
		d := newDecoder()
		if first {
			plugin(d, "f", event.CallerHost, foreign)
		}
		plugin(d, "a", event.CallerRuntime, own)
		if !first {
			plugin(d, "f", event.CallerHost, foreign)
		}
		d.note(event.Event{Body: &event.Exit{Process: "f"}})
		d.sandboxes.Forget(1 << 40) // the pod's plugin still runs
		for text, want := range map[string][]string{foreign: nil, own: {one}, one: {one}, "veth1a2b3ca": {one}, "veth1a2b3cf": nil} {
			if got := d.sandboxes.Mentions(nil, nil, text); !slices.Equal(got, want) {
				t.Errorf("the forger first: %v: %s mentions %v, want %v", first, text, got, want)
			}
		}
		if got := d.sandboxes.Mentions([]event.Namespace{{Key: foreign}}, nil); len(got) != 0 {
			t.Errorf("the forger first: %v: its namespace mentions %v", first, got)
		}
	}
}
