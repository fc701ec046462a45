package record

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func fill(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), path)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(t, v.Index(i), path)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, path)
		fill(t, value, path)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("the " + path + ` <&> "é…" C:\n`)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1<<60 + 1) // exceeds a float's precision
	case reflect.Uint32:
		v.SetUint(1<<32 - 1)
	case reflect.Uint64:
		v.SetUint(1<<64 - 1)
	default:
		t.Fatalf("%s: a field of kind %s: teach it to clean.go and to this test", path, v.Kind())
	}
}

func TestRoundTrip(t *testing.T) {
	for _, kind := range event.Kinds() {
		for _, filled := range []bool{false, true} {
			t.Run(kind, func(t *testing.T) {
				body := event.New(kind)
				if filled {
					fill(t, reflect.ValueOf(body).Elem(), kind)
				}
				want := event.Event{Time: 1<<60 + 1, Body: body}
				var file bytes.Buffer
				write(t, &file, Header{}, want)
				if got := read(t, &file); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
					t.Fatalf("wrote %+v, read %+v", want.Body, got)
				}
			})
		}
	}
}

func TestHeaderRoundTrip(t *testing.T) {
	want := Header{
		Writer: "0.1.0", Kernel: "6.12.9-amd64", BootID: "c0ffee", Node: "node-1", Arch: "arm64",
		Options: []byte(`{"slow":{"command":250000000000000001,"rule":[{"match":"powershell*"}]}}`),
		Clock:   Clock{Mono: 5, Wall: 1<<60 + 1},
	}
	var file bytes.Buffer
	write(t, &file, want)
	r := harness.Must(NewReader(&file))(t)
	want.Format, want.Version = "recording", Version
	if got := r.Header(); !reflect.DeepEqual(got, want) {
		t.Fatalf("wrote %+v\n read %+v", want, got)
	}
}

func write(t *testing.T, out io.Writer, header Header, events ...event.Event) {
	t.Helper()
	w := harness.Must(NewWriter(out, header))(t)
	for _, e := range events {
		harness.Check(t, w.Write(e))
	}
	harness.Check(t, w.Close())
}

func read(t *testing.T, in io.Reader) []event.Event {
	t.Helper()
	r := harness.Must(NewReader(in))(t)
	return harness.Must(all(r))(t)
}

func all(r *Reader) (events []event.Event, err error) {
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

var someEvents = []event.Event{
	{Time: 1, Body: &event.Runtime{Name: "containerd", Version: "2.4.2"}},
	{Time: 2, Body: &event.Tick{}},
}

func TestCreateAndOpen(t *testing.T) {
	for _, name := range []string{"run.jsonl", "run.jsonl.gz"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			w := harness.Must(Create(path, Host(), false))(t)
			for _, e := range someEvents {
				harness.Check(t, w.Write(e))
			}
			harness.Check(t, w.Flush())
			if got := readFile(t, path, strings.HasSuffix(name, ".gz")); got != len(someEvents) {
				t.Fatalf("after Flush: %d events in the file, want %d", got, len(someEvents))
			}
			harness.Check(t, w.Close())
			if got := readFile(t, path, false); got != len(someEvents) {
				t.Fatalf("after Close: %d events in the file, want %d", got, len(someEvents))
			}
			info := harness.Must(os.Stat(path))(t)
			if runtime.GOOS != "windows" && info.Mode() != 0o600 {
				t.Errorf("mode %v, want only the owner to read it", info.Mode())
			}
			raw, _ := os.ReadFile(path)
			harness.Equal(t, bytes.HasPrefix(raw, []byte("\x1f\x8b")), strings.HasSuffix(name, ".gz"), "compressed")
		})
	}
}

func readFile(t *testing.T, path string, unfinished bool) int {
	t.Helper()
	r := harness.Must(Open(t.Context(), path))(t)
	defer r.Close()
	events, err := all(r)
	var truncated *TruncatedError
	if errors.As(err, &truncated) != unfinished || !unfinished && err != nil {
		t.Fatal(err)
	}
	return len(events)
}

func TestCreateSparesWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept")
	harness.Check(t, os.WriteFile(kept, []byte("precious"), 0o644))
	link := filepath.Join(dir, "link")
	if err := os.Symlink(kept, link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	dangling := filepath.Join(dir, "dangling")
	harness.Check(t, os.Symlink(filepath.Join(dir, "elsewhere"), dangling))
	tests := map[string]struct {
		path      string
		overwrite bool
		says      string
	}{
		"a file":                   {kept, false, "choose another name"},
		"a link":                   {link, false, "choose another name"},
		"a link to nothing":        {dangling, false, "choose another name"},
		"a link, overwriting":      {link, true, "not a regular file"},
		"a folder":                 {dir, true, "not a regular file"},
		"in a folder that is none": {filepath.Join(kept, "x"), false, "create the recording"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := Create(test.path, Header{}, test.overwrite); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("error %v, want %q", err, test.says)
			}
		})
	}
	if _, err := Create(kept, Header{}, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v does not wrap fs.ErrExist", err)
	}
	if got, _ := os.ReadFile(kept); string(got) != "precious" {
		t.Fatalf("the file was overwritten: %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "elsewhere")); err == nil {
		t.Fatal("a link was followed")
	}

	// A file that a kill left.
	harness.Check(t, os.WriteFile(filepath.Join(dir, ".kept.next"), nil, 0o600))
	w := harness.Must(Create(kept, Header{}, true))(t)
	harness.Check(t, w.Close())
	if info, _ := os.Stat(kept); runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("an overwritten file keeps its mode %v", info.Mode())
	}
}

func TestTooLongAnEvent(t *testing.T) {
	var file bytes.Buffer
	w := harness.Must(NewWriter(&file, Header{}))(t)
	if err := w.Write(event.Event{Body: &event.Degraded{Reason: strings.Repeat("x", maxLine)}}); !errors.Is(err,
		ErrTooLong) {
		t.Fatal(err)
	}
	if err := w.Write(event.Event{}); err == nil {
		t.Fatal("an event without a body was written")
	}
	harness.Check(t, w.Write(event.Event{Body: &event.Tick{}}))
	harness.Check(t, w.Close())
	if got := read(t, &file); len(got) != 1 {
		t.Fatalf("%d events, want 1", len(got))
	}
}

func TestTooLongAHeader(t *testing.T) {
	for name, overwrite := range map[string]bool{"new": false, "overwriting": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "run.jsonl.gz")
			if _, err := Create(path, Header{BootID: strings.Repeat("x", maxLine)}, overwrite); !errors.Is(err, ErrTooLong) {
				t.Fatal(err)
			}
			if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
				t.Errorf("left behind: %v, %v", names, err)
			}
		})
	}
}

func TestOpenNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	harness.Check(t, os.WriteFile(path, []byte(head+"nonsense\n"), 0o600))
	r, err := Open(t.Context(), path)
	harness.Check(t, err)
	defer r.Close()
	if _, err = r.Next(); !strings.HasPrefix(err.Error(), path+":2: ") {
		t.Fatalf("%v does not name %s:2", err, path)
	}
}
