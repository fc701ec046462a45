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
	web := event.Pod{Namespace: "shop", Name: "web-1"}
	tests := map[string]struct {
		cached, seen []Attachment
		incomplete   bool
		want         string
	}{
		"of a sandbox that is there": {cached: []Attachment{{ContainerID: "here", IfName: "eth0", Since: ago(time.Hour)}}},
		"young": {cached: []Attachment{{
			ContainerID: "gone", IfName: "eth0",
			Since: ago(After - time.Second),
		}}},
		"just old enough": {
			cached: []Attachment{{ContainerID: "gone", IfName: "eth0", Since: ago(After)}},
			want:   "gone/eth0 ",
		},
		"of the interface lo, which holds nothing": {cached: []Attachment{{
			ContainerID: "gone", IfName: "lo",
			Since: ago(time.Hour),
		}}},
		"seen, and libcni has forgotten it": {seen: []Attachment{{
			ContainerID: "gone", IfName: "eth0",
			Since: ago(time.Hour), Pod: web,
		}}},
		"seen, and nobody knows what libcni remembers": {seen: []Attachment{{
			ContainerID: "gone", IfName: "eth0",
			Since: ago(time.Hour),
		}}, incomplete: true, want: "gone/eth0 "},
		"seen to fail: libcni remembers no such": {seen: []Attachment{{
			ContainerID: "gone", IfName: "eth0",
			Since: ago(time.Hour), Failed: true,
		}}, want: "gone/eth0 "},
		"seen, of the interface lo": {seen: []Attachment{{
			ContainerID: "gone", IfName: "lo",
			Since: ago(time.Hour), Failed: true,
		}}, incomplete: true},
		"seen to fail, of a sandbox that is there": {seen: []Attachment{{
			ContainerID: "here", IfName: "eth0",
			Since: ago(time.Hour), Failed: true,
		}}},
		"both cached and seen": {cached: []Attachment{{
			ContainerID: "gone", IfName: "eth0",
			Network: "pods", Since: ago(time.Hour),
		}}, seen: []Attachment{{ContainerID: "gone", IfName: "eth0", Since: ago(time.Hour)}}, want: "gone/eth0 "},
		"two networks of one interface, by a meta plugin": {cached: []Attachment{{
			ContainerID: "gone", IfName: "eth0",
			Network: "multus", Since: ago(time.Hour),
		}, {ContainerID: "gone", IfName: "eth0", Network: "pods", Since: ago(time.Hour)}}, want: "gone/eth0 gone/eth0 "},
		"the oldest comes first": {cached: []Attachment{{
			ContainerID: "b", IfName: "eth0",
			Since: ago(time.Hour),
		}, {ContainerID: "a", IfName: "eth0", Since: ago(2 * time.Hour)}}, want: "a/eth0 b/eth0 "},
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
