package decode

import (
	"encoding/json"
	"reflect"
	"testing"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/test/harness"
)

func harmless(t *testing.T, events []event.Event) {
	t.Helper()
	for _, e := range events {
		if _, err := json.Marshal(e.Body); err != nil {
			t.Errorf("%T: %v", e.Body, err)
		}
		texts(reflect.ValueOf(e.Body), func(s string) {
			if len(s) > 4096 || !utf8.ValidString(s) {
				t.Errorf("%T: %q left the decoder", e.Body, s)
			}
			for _, r := range s {
				if !unicode.IsPrint(r) {
					t.Errorf("%T: %q left the decoder", e.Body, s)
				}
			}
		})
	}
}

func texts(v reflect.Value, f func(string)) {
	switch v.Kind() {
	case reflect.String:
		f(v.String())
	case reflect.Pointer:
		if !v.IsNil() {
			texts(v.Elem(), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			texts(v.Field(i), f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			texts(v.Index(i), f)
		}
	}
}

// FuzzCall decodes records of a known process. testdata/fuzz/FuzzCall has real ones.
func FuzzCall(f *testing.F) {
	f.Add([]byte{byte(kernel.LifeKindKIND_CALL)})
	size := unsafe.Offsetof(kernel.InsideCallEvent{}.Data)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) == 0 {
			return
		}
		raw[0] = byte(kernel.LifeKindKIND_CALL)
		d := newDecoder()
		var w kernel.InsideCallEvent
		if _, err := wire(&w, raw, size); err == nil {
			process := kernel.ProcessOf(w.H.Task)
			p := d.get(process, "")
			p.stdin, p.stdout = w.Object, w.Object
			d.note(event.Event{Body: &event.Exec{Process: process, Root: true, InPath: true, Call: &event.Call{}}})
		}
		for range 2 { // the second meets the state of the first
			events, err := d.Events(raw)
			if err != nil {
				return
			}
			harmless(t, events)
		}
		harmless(t, d.note(event.Event{Body: &event.Exit{Process: kernel.ProcessOf(w.H.Task)}}))
	})
}

func TestNoClassOfRecordsVanishes(t *testing.T) {
	lasting := map[kernel.InsideClass]bool{
		kernel.InsideClassCLASS_OTHER: true, kernel.InsideClassCLASS_WORK: true, kernel.InsideClassCLASS_NEVER: true, kernel.InsideClassCLASS_SLEEP: true,
		kernel.InsideClassCLASS_FUTEX: true, kernel.InsideClassCLASS_POLL: true, kernel.InsideClassCLASS_WAIT: true,
	}
	d := newDecoder()
	for class := range kernel.InsideClassCLASSES {
		if (handlers[class] == nil) != lasting[class] {
			t.Errorf("class %d: a handler: %v", class, handlers[class] != nil)
		}
	}
	for class := range 256 { // unknown classes also are waits, and a connect of which only the wait was seen
		bodies := d.bodies(record{InsideCallEvent: &kernel.InsideCallEvent{Class: uint8(class)}})
		if wait, is := bodiesWait(bodies); (class >= int(kernel.InsideClassCLASSES) || class == int(kernel.InsideClassCLASS_CONNECT)) && (!is || wait.Kind != event.WaitCall) {
			t.Errorf("class %d: %+v", class, bodies)
		}
	}
}

func bodiesWait(bodies []event.Body) (*event.Wait, bool) {
	if len(bodies) != 1 {
		return nil, false
	}
	w, is := bodies[0].(*event.Wait)
	return w, is
}

// The last sample of a frozen holder may come after the thaw: then no file freezes it any more.
func TestWhatFrozeAHolderIsKept(t *testing.T) {
	frozen, stopped := event.AgentFrozen, event.AgentStopped
	d := &Decoder{holders: map[uint32]*holder{1: {Actor: &event.Actor{PID: 7}}}}
	for i, sample := range []struct {
		state    event.AgentState
		by, want string
	}{{frozen, "cgroup.freeze", "cgroup.freeze"}, {frozen, "", "cgroup.freeze"}, {stopped, "", ""}, {"", "", ""}} {
		now := int64(i + 1)
		d.holders[2], d.holders[3] = &holder{Actor: &event.Actor{PID: 7}}, &holder{Actor: &event.Actor{PID: 8}}
		asked := 0
		d.LookAtHolders(now, func(int) (event.AgentState, string) { asked++; return sample.state, sample.by })
		harness.Equal(t, asked, 2, "looks at two holders of three waiters")
		if h := d.holders[1].during(now); h.By != sample.want {
			t.Errorf("sample %d: %s by %q, want %q", i, h.State, h.By, sample.want)
		}
	}
}

// The end of a wait may be lost.
func TestTheHolderOfAnUnfollowedWaitIsForgotten(t *testing.T) {
	d := &Decoder{holders: map[uint32]*holder{1: {waiter: "gone"}, 2: {waiter: "here"}}}
	d.Keep(func(p event.Process) bool { return p == "here" }, 0)
	harness.Equal(t, len(d.holders), 1)
}

// A wait that began before its process was followed has no file; that is not the root directory.
func TestALockWithoutAFileHasNoPath(t *testing.T) {
	d := &Decoder{}
	for name, want := range map[string]string{"": "", "lock\x00run\x00": "/run/lock"} {
		r := record{InsideCallEvent: &kernel.InsideCallEvent{Class: uint8(kernel.InsideClassCLASS_FLOCK)}, data: []byte(name)}
		bodies, _ := d.lock(r)
		harness.Equal(t, bodies[0].(*event.Wait).Path, want)
	}
}
