package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/queue"
	"github.com/cniscope/cniscope/test/harness"
)

func names(t *testing.T, path string) []string {
	t.Helper()
	data := harness.Must(os.ReadFile(path))(t)
	if len(data) > 0 && data[len(data)-1] != '\n' {
		t.Fatalf("%s ends in the middle of a line", path)
	}
	var all []string
	for _, line := range bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		traces, err := (&ptrace.JSONUnmarshaler{DisallowUnknownFields: true}).UnmarshalTraces(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for _, rs := range traces.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					all = append(all, s.Name())
				}
			}
		}
	}
	return all
}

func TestTheFileHoldsOTLPJSONLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spans.json")
	e := NewFile(path, 1<<20)
	spans := append(operation("a\nb"), operation("c")...)
	for range 2 {
		harness.Check(t, Send(t.Context(), e, spans))
	}
	harness.Equal(t, fmt.Sprintf("%q", names(t, path)), `["a\nb" "c" "a\nb" "c"]`)

	data, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(data), "\n")
	var raw struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []map[string]any
			}
		}
	}
	harness.Check(t, json.Unmarshal([]byte(line), &raw))
	// OTLP specification, "JSON Protobuf Encoding": ids in hex, 64-bit numbers as text.
	span := raw.ResourceSpans[0].ScopeSpans[0].Spans[0]
	for key, want := range map[string]string{
		"traceId": "00000000000000000000000000000004", "spanId": "0000000000000004",
		"startTimeUnixNano": "1700000000123456789",
	} {
		harness.DeepEqual(t, span[key], want, key)
	}
}

func TestTheFileIsItsOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spans.json")
	harness.Check(t, os.WriteFile(path, nil, 0o644))
	harness.Check(t, os.Chmod(path, 0o644))
	for range 2 { // an existing file, then a created one
		harness.Check(t, Send(t.Context(), NewFile(path, 1<<20), operation("a")))
		info := harness.Must(os.Stat(path))(t)
		harness.Equal(t, info.Mode().Perm(), 0o600, "mode")
		harness.Check(t, os.Remove(path))
	}
}

func TestOnlyARegularFileIsWritten(t *testing.T) {
	dir := t.TempDir()
	victim, link, pipe := filepath.Join(dir, "victim"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	harness.Check(t, os.WriteFile(victim, nil, 0o600))
	harness.Check(t, os.Symlink(victim, link))
	harness.Check(t, syscall.Mkfifo(pipe, 0o600))
	for path, want := range map[string]string{
		link:                            "it is a link, name the file itself",
		pipe:                            "open the OTLP file",
		"/dev/full":                     "is not a regular file",
		dir:                             "is a directory",
		filepath.Join(dir, "none", "f"): "make its folder",
		filepath.Join(victim, "f"):      "not a directory",
		filepath.Join(dir, "a\x00b"):    "invalid argument",
		filepath.Join(dir, strings.Repeat("x", 300)): "file name too long",
	} {
		err := Send(t.Context(), NewFile(path, 1<<20), operation("a"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", path, err, want)
		}
	}
	if data, _ := os.ReadFile(victim); len(data) > 0 {
		t.Error("the link was followed")
	}
}

func TestTheFileIsRotatedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spans.json")
	if err := Send(t.Context(), NewFile(path, 1), operation("a")); err != nil {
		t.Fatal(err) // exceeds maxBytes, but is written
	}
	one := harness.Must(os.Stat(path))(t)
	e := NewFile(path, 2*one.Size())
	for _, name := range []string{"b", "c", "d", "e"} {
		harness.Check(t, Send(t.Context(), e, operation(name)))
	}
	harness.Equal(t, fmt.Sprint(names(t, path+".1"), names(t, path)), "[c d] [e]")
}

func TestAFileThatIsRemovedIsMadeAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spans.json")
	e := NewFile(path, 1<<20)
	for _, name := range []string{"a", "b"} {
		harness.Check(t, Send(t.Context(), e, operation(name)))
		harness.Equal(t, fmt.Sprint(names(t, path)), "["+name+"]")
		harness.Check(t, os.Remove(path))
	}
}

func TestAFullDiskLeavesNoHalfLines(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("a full disk cannot be made here: mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "spans.json")
	e := NewFile(path, 1<<20)
	long := strings.Repeat("x", 5000)
	var err error
	written := 0
	for ; err == nil && written < 100; written++ {
		err = Send(t.Context(), e, operation(long))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("%v after %d", err, written)
	}
	harness.Equal(t, len(names(t, path)), written-1, "whole lines")

	// With free space the failed data is written once.
	harness.Check(t, os.Truncate(path, 0))
	harness.Check(t, Send(t.Context(), e, operation("at last")))
	harness.Equal(t, fmt.Sprint(names(t, path)), "[at last]")
}

func TestSpansThatCannotBeEncodedAreRejected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spans.json")
	err := Send(t.Context(), NewFile(path, 1<<20), []*tracepb.ResourceSpans{{SchemaUrl: "\xff"}})
	if r := (*queue.RejectedError)(nil); !errors.As(err, &r) {
		t.Errorf("%v", err)
	}
}

// Before: a user who made the file first read every span, and a hard link changed the mode of another file.
func TestAFileOfAnotherIsNotUsed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it takes root to give a file away")
	}
	dir := t.TempDir()
	theirs, victim, linked := filepath.Join(dir, "theirs"), filepath.Join(dir, "victim"), filepath.Join(dir, "linked")
	harness.Check(t, os.WriteFile(theirs, nil, 0o600))
	harness.Check(t, os.Chown(theirs, 65534, -1))
	harness.Check(t, os.WriteFile(victim, []byte("x"), 0o644))
	harness.Check(t, os.Link(victim, linked))
	for file, want := range map[string]string{theirs: "belongs to uid 65534", linked: "has 2 names"} {
		if err := NewFile(file, 1<<20).Send(t.Context(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
	info := harness.Must(os.Stat(victim))(t)
	harness.Equal(t, info.Mode().Perm(), 0o644, "the victim's mode")
}
