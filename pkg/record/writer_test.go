package record

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

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
	if err := w.Write(event.Event{Body: &event.Degraded{Reason: strings.Repeat("x", MaxLine)}}); !errors.Is(err,
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
			if _, err := Create(path, Header{BootID: strings.Repeat("x", MaxLine)}, overwrite); !errors.Is(err, ErrTooLong) {
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
