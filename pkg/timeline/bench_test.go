package timeline

import (
	"fmt"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
)

// A pod's setup: bridge with its delegated plugin and 57 commands.
func BenchmarkApply(b *testing.B) {
	var events []event.Event
	at := func(body event.Body) {
		events = append(events, event.Event{Time: int64(len(events)) * ms, Body: body})
	}
	call := &event.Call{Command: "ADD", ContainerID: "c1", IfName: "eth0", NetNS: "/run/netns/c1"}
	at(&event.Exec{
		Process: "b", Parent: "cd", Root: true, InPath: true, File: "/opt/cni/bin/bridge", Name: "bridge",
		Stdin: "pipe-b", Call: call,
	})
	at(&event.Fork{Process: "hl", Parent: "b"})
	at(&event.Exec{
		Process: "hl", Parent: "b", InPath: true, File: "/opt/cni/bin/host-local", Name: "host-local",
		Stdin: "pipe-hl", Call: call,
	})
	at(&event.Exit{Process: "hl"})
	for i := range 57 {
		p := event.Process(fmt.Sprint("i", i))
		at(&event.Fork{Process: p, Parent: "b"})
		at(&event.Exec{Process: p, Parent: "b", File: "/usr/sbin/xtables-nft-multi", Name: "iptables"})
		at(&event.Exit{Process: p})
	}
	at(&event.Exit{Process: "b"})
	at(&event.Sandbox{Phase: event.SandboxRunning, ID: "c1"})
	at(&event.Tick{})
	at(&event.Sandbox{Phase: event.SandboxRemoved, ID: "c1"})

	t := tell(nil).line
	t.options.Images, t.options.Facts, t.options.Settle = 1000, 500, 0
	closed, i := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		e := events[i%len(events)]
		e.Time += int64(i/len(events)) * 1000 * ms // repeated a second later
		closed += len(t.Apply(e))
		i++
	}
	if want := i / len(events); closed < want {
		b.Fatalf("%d operations, want %d", closed, want)
	}
}
