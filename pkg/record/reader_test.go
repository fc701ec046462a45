package record

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

const (
	head = `{"cniscope":"recording","version":2,"writer":"0.1.0","clock":{"mono":1,"wall":2}}` + "\n"
	tick = `{"t":1,"tick":{}}` + "\n"
)

func TestNotARecording(t *testing.T) {
	tests := map[string]struct {
		file string
		want error
		says string
	}{
		"empty":               {"", ErrNotRecording, "it is empty"},
		"text":                {"hello\n", ErrNotRecording, "cniscope record"},
		"other JSON":          {`{"resourceSpans":[]}` + "\n", ErrNotRecording, "cniscope record"},
		"no version":          {`{"cniscope":"recording"}` + "\n", ErrNotRecording, "cniscope record"},
		"no header":           {tick, ErrNotRecording, "cniscope record"},
		"half a header":       {head[:30], ErrNotRecording, "cniscope record"},
		"a header of numbers": {`{"cniscope":"recording","version":1,"writer":7}` + "\n", ErrNotRecording, "header"},
		"options of a list":   {`{"cniscope":"recording","version":1,"options":[1]}` + "\n", ErrNotRecording, "options"},
		"newer": {
			`{"cniscope":"recording","version":3,"clock":"noon"}` + "\n", ErrNewer,
			"read it with a newer one",
		},
		"half of gzip":  {"\x1f\x8b\x08", ErrNotRecording, "unexpected EOF"},
		"one long line": {strings.Repeat("x", maxLine+1), ErrNotRecording, "token too long"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := NewReader(strings.NewReader(test.file))
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) ||
				!strings.HasPrefix(err.Error(), "recording:1: ") {
				t.Fatalf("error %v, want one that wraps %q and says %q", err, test.want, test.says)
			}
		})
	}
}

func TestBrokenLines(t *testing.T) {
	tests := map[string]struct {
		lines string
		want  error
		says  string
	}{
		"no JSON":        {"nonsense\n" + tick, ErrBroken, "invalid character"},
		"cut, not last":  {`{"t":1,"ti` + "\n" + tick, ErrBroken, "string literal"},
		"no time":        {`{"tick":{}}` + "\n", ErrBroken, "no time"},
		"no body":        {`{"t":1}` + "\n", ErrBroken, "nothing but its time"},
		"no body, last":  {`{"t":1}`, ErrBroken, "nothing but its time"},
		"time is text":   {`{"t":"1","tick":{}}` + "\n", ErrBroken, `"t"`},
		"two bodies":     {`{"t":1,"tick":{},"fork":{}}` + "\n", ErrBroken, "two events"},
		"wrong type":     {`{"t":1,"fork":{"pid":"x"}}` + "\n", ErrBroken, "pid"},
		"an empty line":  {"\n", ErrBroken, "unexpected end"},
		"a line of JSON": {"null\n", ErrBroken, "no time"},
		"too long":       {strings.Repeat(" ", maxLine) + tick, ErrTooLong, "longer than"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := harness.Must(NewReader(strings.NewReader(head + tick + test.lines)))(t)
			events, err := all(r)
			harness.Equal(t, len(events), 1, "events before the broken line")
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) ||
				!strings.HasPrefix(err.Error(), "recording:3: ") || !strings.Contains(err.Error(), "record again") {
				t.Fatalf("error %v, want one of line 3 that wraps %q and says %q", err, test.want, test.says)
			}
			if _, again := r.Next(); !errors.Is(again, test.want) {
				t.Errorf("read on past the error: %v", again)
			}
		})
	}
}

func TestTruncated(t *testing.T) {
	file := head + tick + `{"t":2,"lost":{"source":"probe","reason":"ring full","count":3}}` + "\n"
	for cut := len(head); cut < len(file); cut++ {
		r := harness.Must(NewReader(strings.NewReader(file[:cut])))(t)
		events, err := all(r)
		whole := strings.Count(file[:cut], "\n") - 1
		rest := file[:cut][strings.LastIndexByte(file[:cut], '\n')+1:]
		if strings.HasSuffix(rest, "}}") && cut == len(file)-1 || strings.HasSuffix(rest, "{}}") {
			whole, rest = whole+1, "" // only the line feed is missing
		}
		if len(events) != whole {
			t.Fatalf("cut at %d: %d events, want %d", cut, len(events), whole)
		}
		var truncated *TruncatedError
		switch {
		case rest == "" && err != nil:
			t.Fatalf("cut at %d, between lines: %v", cut, err)
		case rest != "" && !errors.As(err, &truncated):
			t.Fatalf("cut at %d, in a line: %v", cut, err)
		case rest != "" && truncated.Line != whole+2:
			t.Fatalf("cut at %d: says line %d, want %d", cut, truncated.Line, whole+2)
		}
	}
}

// pack gzips two parts, and returns the length of the first after a flush.
func pack(first, second string) (packed []byte, flushed int) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := io.WriteString(z, first)
	err = errors.Join(err, z.Flush())
	flushed = out.Len()
	_, err2 := io.WriteString(z, second)
	if err = errors.Join(err, err2, z.Close()); err != nil {
		panic(err)
	}
	return out.Bytes(), flushed
}

func TestTruncatedGzip(t *testing.T) {
	// As after a kill of the recorder.
	packed, flushed := pack(head+tick, strings.Repeat(tick, 5))

	r := harness.Must(NewReader(bytes.NewReader(packed[:flushed])))(t)
	events, err := all(r)
	var truncated *TruncatedError
	if len(events) != 1 || !errors.As(err, &truncated) || truncated.Line != 3 {
		t.Fatalf("%d events, %v; want 1 and line 3 cut", len(events), err)
	}

	damaged := bytes.Clone(packed)
	damaged[len(damaged)-8]++ // the checksum
	if r, err = NewReader(bytes.NewReader(damaged)); err != nil {
		t.Fatal(err)
	}
	if _, err = all(r); !errors.Is(err, gzip.ErrChecksum) {
		t.Fatalf("a damaged archive is read as %v", err)
	}
}

func TestNewerKindsAreSkippedAndCounted(t *testing.T) {
	file := head + tick +
		`{"t":2,"netlink":{"request":"RTM_NEWLINK"}}` + "\n" +
		`{"t":3,"lock":[1,2]}` + "\n" +
		`{"t":4,"cpu":1,"tick":{"of":"a newer field"}}` + "\n"
	r := harness.Must(NewReader(strings.NewReader(file)))(t)
	events, err := all(r)
	if err != nil || len(events) != 2 || events[1].Time != 4 || r.Skipped() != 2 {
		t.Fatalf("%d events, %d skipped, %v; want 2, 2, none", len(events), r.Skipped(), err)
	}
}

func TestHostileTextIsCleaned(t *testing.T) {
	hostile := `\u001b]0;owned\u0007\u202e\n` + strings.Repeat("A", maxString+100)
	file := strings.ReplaceAll(`{"cniscope":"recording","version":1,"writer":"W","kernel":"W","node":"W","options":{"W":["W",{"W":"W"},1]}}
{"t":1,"exec":{"process":"W","file":"W","name":"W","args":["W"],"netns":{"key":"W"},"call":{"command":"W","path":["W"],"pod":{"name":"W"},"traceparent":"W"}}}
{"t":2,"sandbox":{"phase":"W","id":"W","labels":{"W":"W"},"annotations":{"W":"W"},"ips":["W"]}}
{"t":3,"networks":{"networks":[{"name":"W","plugins":[{"type":"W","ipam":"W"}]}]}}
{"t":4,"degraded":{"feature":"W","reason":"W"}}
`, "W", hostile)
	r := harness.Must(NewReader(strings.NewReader(file)))(t)
	events, err := all(r)
	if err != nil || len(events) != 4 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	var again bytes.Buffer
	write(t, &again, r.Header(), events...)
	for _, line := range strings.SplitAfter(again.String(), "\n") {
		for _, c := range strings.TrimSuffix(line, "\n") {
			if !unicode.IsPrint(c) {
				t.Fatalf("%q came through in %.200s", c, line)
			}
		}
		for _, escape := range []string{`"\u001b`, `\u0007\`, `\n"`} {
			if strings.Contains(strings.ReplaceAll(line, `\\`, ""), escape) {
				t.Fatalf("%s came through in %.200s", escape, line)
			}
		}
	}
	name := events[0].Body.(*event.Exec).Name
	if !strings.HasPrefix(name, `\x1b]0;owned\x07\u202e\nAAA`) || len(name) > maxString {
		t.Fatalf("a name of %d bytes: %.60s", len(name), name)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(head + tick))
	f.Add([]byte(head + `{"t":1,"sandbox":{"phase":"running","labels":{"a\n":"b","a\\n":"c"}}}` + "\n" +
		`{"t":2,"new":1}`))
	f.Add([]byte(head + `{"t":-1,"exec":{"name":"\ud800","args":null,"call":{}}}`))
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"))
	packed, _ := pack(head+tick, "")
	f.Add(packed)
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := NewReader(bytes.NewReader(file))
		if err != nil {
			return
		}
		events, _ := all(r)
		first := rewrite(t, r.Header(), events)
		second := harness.Must(NewReader(bytes.NewReader(first)))(t)
		events = harness.Must(all(second))(t)
		if again := rewrite(t, second.Header(), events); !bytes.Equal(first, again) {
			t.Fatalf("not stable:\n%s\n%s", first, again)
		}
		for _, c := range string(first) {
			if c != '\n' && unicode.IsControl(c) {
				t.Fatalf("%q came through", c)
			}
		}
	})
}

// split and decodeAny agree.
func FuzzDecode(f *testing.F) {
	for _, line := range []string{
		tick, `{"t":2,"sandbox":{"id":"a"}}`, `{"t":-3,"exit":{},"exec":{}}`,
		`{"t":4,"tick":{},"t":5}`, `{"t":05,"tick":{}}`, `{"t":6,"new":{},"tick":{}}`, `{"t":7,"ti\u0063k":{}}`, `{"t":8,"TICK":{}} `, `{"t":9,"tick":{}}}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		for version := 1; version <= Version; version++ {
			got, err := decode(line, version)
			want, wrong := decodeAny(line, version)
			if (err == nil) != (wrong == nil) || err == nil && !reflect.DeepEqual(got, want) {
				t.Fatalf("%q: %+v %v, want %+v %v", line, got, err, want, wrong)
			}
		}
	})
}

func TestARecordingIsReadOfSoMuch(t *testing.T) {
	long := `{"t":9,"exit":{"signal":"` + strings.Repeat("x", MaxEvent) + `"}}` + "\n"
	for name, test := range map[string]struct {
		file          string
		bytes         int64
		most, events  int
		says          string
		bound, broken bool
	}{
		"all of it": {head + tick + tick, 1 << 20, 2, 2, "", false, false},
		"too many events": {
			head + strings.Repeat(tick, 9), 1 << 20, 4, 4, "recording:6: there are more than 4 events",
			true, false,
		},
		"too many bytes": {
			head + strings.Repeat(tick, 100_000), 1 << 20, 1 << 20, (1 << 20) / len(tick),
			"more than 1 MiB in it, unpacked", true, false,
		},
		"of what nobody knows": {
			head + strings.Repeat(`{"t":1,"new":1}`+"\n", 9), 1 << 20, 4, 0,
			"recording:6: there are more than 4 events", true, false,
		},
		"no bound":             {head + strings.Repeat(tick, 9), 0, 0, 9, "", false, false},
		"an event is too long": {head + tick + long, 1 << 20, 9, 1, "exit: longer than 65536 bytes", false, true},
		"a sandbox may be long": {
			head + strings.ReplaceAll(strings.ReplaceAll(long, "exit", "sandbox"), "signal", "id"),
			1 << 20, 9, 1, "", false, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := harness.Must(NewReader(strings.NewReader(test.file)))(t)
			r.Bound(test.bytes, test.most)
			events, err := all(r)
			var bound *BoundError
			if len(events) != test.events || errors.As(err, &bound) != test.bound || errors.Is(err, ErrBroken) != test.broken {
				t.Fatalf("%d events, %v", len(events), err)
			}
			if test.says == "" && err != nil || test.says != "" && !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want %q", err, test.says)
			}
		})
	}
}

func rewrite(t *testing.T, header Header, events []event.Event) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, header)
	if errors.Is(err, ErrTooLong) {
		t.Skip("longer, escaped, than a line may be")
	}
	harness.Check(t, err)
	for _, e := range events {
		if err := w.Write(e); err != nil && !errors.Is(err, ErrTooLong) {
			t.Fatal(err)
		}
	}
	harness.Check(t, w.Close())
	return out.Bytes()
}
