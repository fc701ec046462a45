package netlink

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

// FuzzCall: for any bytes decoding ends, and the result is printable, bounded and of the vocabulary. The seeds come
// from real programs (real_test.go).
func FuzzCall(f *testing.F) {
	for _, m := range real(f) {
		f.Add(m.family, uint32(0x8914), m.data)
	}
	f.Fuzz(func(t *testing.T, family uint16, command uint32, data []byte) {
		before := slices.Clone(data)
		c := anyone(family)
		var bodies []any
		for _, q := range c.Requests(data) {
			bodies = append(bodies, q)
		}
		for _, b := range c.Answers(data) {
			bodies = append(bodies, b)
		}
		bodies = append(bodies, c.Replace(uint64(command), 0, data))
		if q := c.Ioctl(command, 0, data); q != nil {
			bodies = append(bodies, q)
		}
		for _, b := range bodies {
			if q, is := b.(*event.Request); is &&
				!slices.Contains([]event.Verb{"", event.VerbAdd, event.VerbChange, event.VerbDelete, event.VerbQuery}, q.Verb) {
				t.Errorf("a verb %q", q.Verb)
			}
			check(t, reflect.ValueOf(b))
		}
		harness.EqualSlices(t, before, data, "the bytes were changed")
	})
}

func check(t *testing.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		check(t, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			check(t, v.Field(i))
		}
	case reflect.String:
		if s := v.String(); !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) || len(s) > 512 {
			t.Errorf("%q leaves", s)
		}
	}
}

func anyone(family uint16) *Call {
	nowhere := func(uint32) event.Namespace { return event.Namespace{} }
	return &Call{Family: family, Errno: func(n int64) string {
		if n < 0 {
			return "EINVAL"
		}
		return ""
	}, ByFile: nowhere, ByPID: nowhere}
}
