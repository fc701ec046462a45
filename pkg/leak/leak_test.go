package leak

import (
	"fmt"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

func ids(all []Attachment) (text string) {
	for _, a := range all {
		text += a.ContainerID + "/" + a.IfName + " "
	}
	return text
}

func TestWhatIsLeakedAndWhatIsNot(t *testing.T) {
	of := func(id, ifName string, age time.Duration) Attachment {
		return Attachment{ContainerID: id, IfName: ifName, Since: ago(age)}
	}
	failed := func(a Attachment) []Attachment {
		a.Failed = true
		return []Attachment{a}
	}
	in := func(network string) Attachment {
		a := of("gone", "eth0", time.Hour)
		a.Network = network
		return a
	}
	gone := of("gone", "eth0", time.Hour)
	all := func(all ...Attachment) []Attachment { return all }
	tests := map[string]struct {
		cached, seen []Attachment
		incomplete   bool
		want         string
	}{
		"of a sandbox that is there": {cached: all(of("here", "eth0", time.Hour))},
		"young":                      {cached: all(of("gone", "eth0", After-time.Second))},
		"just old enough":            {cached: all(of("gone", "eth0", After)), want: "gone/eth0 "},
		"of the interface lo, which holds nothing":        {cached: all(of("gone", "lo", time.Hour))},
		"seen, and libcni has forgotten it":               {seen: all(gone)},
		"seen, and nobody knows what libcni remembers":    {seen: all(gone), incomplete: true, want: "gone/eth0 "},
		"seen to fail: libcni remembers no such":          {seen: failed(gone), want: "gone/eth0 "},
		"seen, of the interface lo":                       {seen: failed(of("gone", "lo", time.Hour)), incomplete: true},
		"seen to fail, of a sandbox that is there":        {seen: failed(of("here", "eth0", time.Hour))},
		"both cached and seen":                            {cached: all(in("pods")), seen: all(gone), want: "gone/eth0 "},
		"two networks of one interface, by a meta plugin": {cached: all(in("multus"), in("pods")), want: "gone/eth0 gone/eth0 "},
		"the oldest comes first":                          {cached: all(of("b", "eth0", time.Hour), of("a", "eth0", 2*time.Hour)), want: "a/eth0 b/eth0 "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := Look{Time: noon, Alive: map[string]bool{"here": true}, Cached: test.cached, Complete: !test.incomplete}
			harness.Equal(t, ids(l.Attachments(test.seen, After)), test.want, "leaked")
		})
	}
}

func TestABookTellsALeakOnce(t *testing.T) {
	var b Book
	a := Attachment{ContainerID: "x", IfName: "eth0", Network: "pods", Since: ago(time.Hour), Pod: event.Pod{Name: "web"}}
	b.Added(a)
	b.Deleted(a, "plugin bridge: no such link")
	cached := a
	cached.File, cached.Pod = "/var/lib/cni/results/pods-x-eth0", event.Pod{}
	leaking := Look{
		Time: noon, Alive: map[string]bool{}, Cached: []Attachment{cached}, Complete: true,
		Leases: []Lease{{ContainerID: "x", Since: ago(time.Hour)}},
	}
	found, freed := b.Look(leaking, After)
	if len(found) != 1 || found[0].Tried != 1 || found[0].Says == "" || found[0].Pod.Name != "web" || len(freed) != 0 {
		t.Fatalf("found %+v, freed %+v", found, freed)
	}
	if r := b.Readings(); len(r) != 2 || r[0].Value != 1 || r[1].Value != 1 {
		t.Errorf("%+v", r)
	}
	if found, freed = b.Look(leaking, After); len(found)+len(freed) != 0 || len(b.leaked) != 1 {
		t.Errorf("told again: %+v %+v", found, freed)
	}
	if found, freed = b.Look(Look{Time: noon, Alive: map[string]bool{}, Complete: true}, After); len(found) != 0 ||
		len(freed) != 1 || len(b.leaked) != 0 || len(b.Held()) != 0 {
		t.Errorf("found %+v, freed %+v, held %+v", found, freed, b.Held())
	}
}

func TestWhatIsGivenBackIsForgotten(t *testing.T) {
	var b Book
	a := Attachment{ContainerID: "x", IfName: "eth0", Network: "pods", Since: ago(time.Hour)}
	b.Added(a)
	b.Deleted(Attachment{ContainerID: "x", IfName: "eth0"}, "") // without a network name
	if found, _ := b.Look(Look{Time: noon}, After); len(found) != 0 {
		t.Errorf("%+v", found)
	}
	b.Added(a)
	b.Doubt()
	if found, _ := b.Look(Look{Time: noon}, After); len(found) != 0 {
		t.Errorf("a DEL may have been missed: %+v", found)
	}
}

func TestABookIsBounded(t *testing.T) {
	var b Book
	for i := range Max + 10 {
		b.Added(Attachment{ContainerID: fmt.Sprint(i), IfName: "eth0"})
	}
	if held := b.Held(); len(held) != Max || held[0].ContainerID != "10" {
		t.Errorf("%d are held, the first is %+v", len(held), held[0])
	}
}

func TestNothingForeignComesIntoACommand(t *testing.T) {
	for _, bad := range []string{"", "a b", "a;b", "$(x)", "../x", "-x", "a\nb", "`x`", "a'b"} {
		if Named(bad) || Interface(bad) || Plain("/var/"+bad) && bad != "" && bad != "../x" && bad != "-x" {
			t.Errorf("%q is let through", bad)
		}
	}
	if !Named("cni-loopback") || !Interface("eth0") || Interface("an-interface-too-long") ||
		!Plain("/var/lib/cni/networks/pods/fd00::1") {
		t.Error("an ordinary name is refused")
	}
}
