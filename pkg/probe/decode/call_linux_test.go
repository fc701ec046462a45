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
