package probe

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
)

// Whoever passes for a plugin can name any container, and any namespace for it.
func TestAForgerMakesNoEvidenceOfAPodsSandbox(t *testing.T) {
	const foreign, own = "/run/netns/cni-0badcafe", "/run/netns/cni-786877ce"
	plugin := func(in *interior, process event.Process, caller event.Caller, netns string) {
		in.note(event.Event{Body: &event.Exec{
			Process: process, Root: true, InPath: true, Caller: caller, Name: "any",
			Call: &event.Call{Command: "ADD", ContainerID: idOne, NetNS: netns, IfName: "eth0"},
		}})
		in.attribute(process, &event.Request{Name: "RTM_NEWLINK", Interface: event.Interface{Name: "veth1a2b3c" + string(process), Kind: "veth"}})
		in.attribute(process, &event.Enter{NetNS: event.Namespace{Key: netns}})
	}
	for _, first := range []bool{true, false} {
		in := newInterior(true, newSymbols(nil))
		if first {
			plugin(in, "f", event.CallerHost, foreign)
		}
		plugin(in, "a", event.CallerRuntime, own)
		if !first {
			plugin(in, "f", event.CallerHost, foreign)
		}
		in.note(event.Event{Body: &event.Exit{Process: "f"}})
		in.forgetSandboxes(1 << 40) // the pod's plugin still runs
		for text, want := range map[string][]string{foreign: nil, own: {idOne}, idOne: {idOne}, "veth1a2b3ca": {idOne}, "veth1a2b3cf": nil} {
			if got := in.mentions(nil, nil, text); !slices.Equal(got, want) {
				t.Errorf("the forger first: %v: %s mentions %v, want %v", first, text, got, want)
			}
		}
		if got := in.mentions([]event.Namespace{{Key: foreign}}, nil); len(got) != 0 {
			t.Errorf("the forger first: %v: its namespace mentions %v", first, got)
		}
	}
}

// It leaves the runtime's sandboxes their places.
func TestAForgerTakesHalfOfTheSandboxes(t *testing.T) {
	in := newInterior(true, newSymbols(nil))
	for i := range 2 * remember {
		caller := event.CallerHost
		if i >= remember {
			caller = event.CallerRuntime
		}
		in.note(event.Event{Body: &event.Exec{
			Process: event.Process(fmt.Sprint(i)), Root: true, InPath: true, Caller: caller,
			Call: &event.Call{Command: "ADD", ContainerID: fmt.Sprintf("%064x", i)},
		}})
	}
	runtimes := 0
	for _, s := range in.sandboxes {
		if !s.hearsay {
			runtimes++
		}
	}
	if runtimes != remember/2 || len(in.sandboxes) != remember {
		t.Errorf("%d of %d are the runtime's", runtimes, len(in.sandboxes))
	}
}
