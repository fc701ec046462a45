package traced

import (
	"strings"
	"testing"
	"time"
)

const (
	ms   = int64(time.Millisecond)
	hour = int64(time.Hour)
	noon = int64(1_800_000_000e9)
)

// story is an operation during which the clock was set: a plugin from 10 to 60 ms, with a command from 20 to 50 ms,
// and another one from 60 to 80 ms.
func story() (runs []Run, spans []Span) {
	runs = []Run{
		{Sandbox: "s", Plugin: "across", Began: [2]int64{9 * ms, 11 * ms}, Ended: [2]int64{55 * ms, 61 * ms}, Wall: noon},
		{Sandbox: "s", Plugin: "tree", Began: [2]int64{60 * ms, 61 * ms}, Ended: [2]int64{61 * ms, 81 * ms}, Wall: noon},
	}
	span := func(name, kind, id, parent string, start, end int64) Span {
		return Span{name, kind, "s", "t", id, parent, noon + start*ms, noon + end*ms}
	}
	return runs, []Span{
		span("pod network setup", "operation", "0", "", 10, 80),
		span("CNI ADD", "call", "1", "0", 10, 80),
		span("across ADD", "run", "2", "1", 10, 60),
		span("helper", "command", "3", "2", 20, 50),
		span("tree ADD", "run", "4", "1", 60, 80),
	}
}

func TestWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		change func(spans []Span) []Span
		want   string
	}{
		"nothing":      {func(s []Span) []Span { return s }, ""},
		"lost":         {func(s []Span) []Span { return s[:4] }, "0 spans are of tree of s"},
		"all are lost": {func([]Span) []Span { return nil }, "0 spans are of across of s"},
		"sent twice":   {func(s []Span) []Span { return append(s, s[4]) }, "tree ADD of s was sent twice"},
		"two operations": {func(s []Span) []Span {
			again := s[0]
			again.ID = "5"
			return append(s, again)
		}, "2 operations of s"},
		"the step is in a span": {func(s []Span) []Span {
			for i := range s[:3] {
				s[i].End += hour
			}
			return s
		}, "its time is 1h0m0.05s"},
		"on the new clock": {func(s []Span) []Span {
			for i := range s {
				s[i].Start, s[i].End = s[i].Start-hour, s[i].End-hour
			}
			return s
		}, "its start is -59m59.99s"},
		"backwards": {func(s []Span) []Span { s[3].End = s[3].Start - ms; return s }, "helper took -1ms"},
		"a child on another clock": {func(s []Span) []Span {
			s[3].Start, s[3].End = s[3].Start+hour, s[3].End+hour
			return s
		}, "is not within its parent across ADD"},
		"no parent": {func(s []Span) []Span { return s[1:] }, "CNI ADD has a parent that was not sent"},
	} {
		t.Run(name, func(t *testing.T) {
			runs, spans := story()
			wrong := strings.Join(Compare(runs, test.change(spans)), "\n")
			if test.want == "" && wrong != "" || !strings.Contains(wrong, test.want) {
				t.Errorf("%q is wrong, want %q", wrong, test.want)
			}
		})
	}
}
