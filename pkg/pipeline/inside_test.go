package pipeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/attr/registry"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/timeline"
)

// insides are the events from inside of a process, of names few enough that they meet.
func insides(now int64, who, by event.Process, a, b byte) []event.Body {
	start := now - int64(int8(a))*4
	ns := event.Namespace{Key: fmt.Sprint("n", b%3), Label: fmt.Sprint(b % 3)}
	path, socket := fmt.Sprint("/run/lock", b%2), fmt.Sprint("s", b%3)
	failed := []string{"", "EAGAIN", "EEXIST", "EINVAL"}[b%4]
	kind := []event.WaitKind{event.WaitMutex, event.WaitSleep, event.WaitPoll, event.WaitCall}[b%4]
	return []event.Body{
		&event.Wait{Process: who, Start: start, Kind: event.WaitLock, Name: "flock", Path: path, Error: failed, Holder: &event.Actor{Process: by, PID: uint32(b)}},
		&event.Wait{Process: who, Start: start, Kind: event.WaitLock, Path: path, Released: true},
		&event.Wait{Process: who, Start: start, Kind: kind, Name: "rtnl"},
		&event.Request{Process: who, Start: start, Protocol: "rtnetlink", Name: "RTM_NEWLINK", Object: event.ObjectLink, Verb: event.VerbAdd, Sequence: uint32(a % 4), Count: int(b % 3), NetNS: ns, Interface: event.Interface{Index: uint32(b % 3), Name: fmt.Sprint("eth", a%2), Master: 1}},
		&event.Request{Process: who, Start: start, Protocol: "rtnetlink", Name: "RTM_NEWADDR", Object: event.ObjectAddress, Verb: []event.Verb{event.VerbAdd, event.VerbQuery}[b%2], NetNS: ns, Interface: event.Interface{Index: uint32(b % 3)}, Address: "fd00::1/64"},
		&event.Answer{Process: who, Sequence: uint32(a % 4), Error: failed, Message: "no"},
		&event.Address{Process: who, NetNS: ns, Index: uint32(b % 3), Address: "fd00::1", State: []event.AddressState{event.AddressTentative, event.AddressReady, event.AddressDuplicate}[b%3]},
		&event.Setting{Process: who, Start: start, Key: "net/ipv4/ip_forward", Value: "1", Error: failed},
		&event.Mount{Process: who, Start: start, Name: []string{"mount", "umount2"}[b%2], Source: path, Target: "/mnt", Flags: []string{"bind"}, Error: failed},
		&event.Enter{Process: who, NetNS: ns},
		&event.Connect{Process: who, Start: start, Socket: socket, Network: "unix", Address: path, Error: failed, Listener: &event.Actor{Name: "x"}},
		&event.Connect{Process: who, Start: start, Socket: socket, Error: "ECONNREFUSED"},
		&event.Accept{Socket: socket, Agent: event.Actor{PID: uint32(a)}},
		&event.Close{Process: who, Socket: socket},
		&event.Configuration{Process: who, Network: "n", CNIVersion: "1.0.0", Invalid: failed},
		&event.Result{Process: who, IPs: []string{"10.0.0.1"}, Code: uint32(b), Message: "m", Invalid: failed},
		&event.FirstConnection{NetNS: ns, Remote: "10.0.0.9:80"},
		&event.Cut{Process: who, What: []string{"bytes", "requests", "?"}[b%3], Count: 2},
		&event.Detail{On: b%2 == 0},
		&event.Readiness{Ready: b%2 == 0, Reason: failed},
	}
}

// insideSound checks what is known of the inside of an image.
func insideSound(t *testing.T, im *timeline.Image) {
	within := func(what string, i timeline.Interval) {
		if i.End < i.Start || i.Start < im.Start {
			t.Errorf("a %s from %d to %d in an image that began at %d", what, i.Start, i.End, im.Start)
		}
	}
	for _, f := range im.Facts {
		within(fmt.Sprintf("%T", f.What), f.When)
		if w, is := f.What.(*timeline.Wait); is && w.HolderAge < 0 {
			t.Errorf("a lock was held for %d ns", w.HolderAge)
		}
	}
	for _, idle := range [][]timeline.Interval{im.Asleep, im.Polling} {
		for i, one := range idle {
			within("rest", one)
			if i > 0 && one.Start <= idle[i-1].End {
				t.Errorf("rests overlap: %v", idle)
			}
		}
	}
}

// What the fuzzer would take long to find: many events of few processes.
func TestWhateverComesInWhateverOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	m, err := registry.Load()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 300 {
		data := make([]byte, 4*400)
		for i := range data {
			data[i] = byte(random.Uint32())
			if i%4 == 3 {
				data[i] %= 12 // mostly forwards, and not too fast
			}
		}
		p := small()
		var results []Result
		for _, e := range script(data) {
			results = append(results, p.Apply(e)...)
		}
		for _, r := range append(results, p.Flush()...) {
			sound(t, r)
			registered(t, m, seen, r)
		}
	}
	if len(seen) < 70 || !seen[attr.KindOutage] {
		t.Errorf("only %d attributes and kinds were seen", len(seen))
	}
}

// registered checks that the registry has every attribute, of its type (a backend takes the
// first one it sees, and drops the others), and on such a span.
func registered(t *testing.T, m *registry.Model, seen map[string]bool, r Result) {
	if r.Trace.Spans == nil {
		return
	}
	of := map[string]string{"string": "string", "int": "int", "template[int]": "int", "boolean": "bool", "double": "double", "string[]": "array"}
	see := func(where string, kvs []*commonpb.KeyValue) (kind string) {
		for _, kv := range kvs {
			if kv.Key == string(attr.KindKey) {
				where, kind = kv.Value.GetStringValue(), kv.Value.GetStringValue()
			}
			a := m.Attribute(kv.Key)
			if a == nil {
				t.Fatalf("%s of %s is not in the registry", kv.Key, where)
			}
			is := strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", kv.Value.Value), "*v1.AnyValue_"))
			if a.Type != "" && is != of[a.Type]+"value" {
				t.Errorf("%s is a %s, by the registry a %s", kv.Key, is, a.Type)
			}
			if kind != "" && !slices.Contains(a.Kinds, kind) {
				t.Errorf("by the registry no span of the kind %s has %s", kind, kv.Key)
			}
			seen[kv.Key] = true
		}
		return kind
	}
	for _, s := range r.Trace.Spans.ScopeSpans[0].Spans {
		kind := see("", s.Attributes)
		seen[kind] = true
		for _, e := range s.Events {
			see("an event of "+kind, e.Attributes)
		}
		for _, l := range s.Links {
			see("a link of "+kind, l.Attributes)
		}
	}
}
