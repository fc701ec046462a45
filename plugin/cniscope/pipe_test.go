//go:build unix

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/replay"
	"github.com/cniscope/cniscope/test/harness"
)

// A pipe without a writer, and one whose writer stops in the middle, are read for --timeout at most.
func TestAPipeThatSaysNothing(t *testing.T) {
	path, half := filepath.Join(t.TempDir(), "pipe"), filepath.Join(t.TempDir(), "pipe")
	harness.Check(t, errors.Join(syscall.Mkfifo(path, 0o600), syscall.Mkfifo(half, 0o600)))
	o := replay.Options{Timeout: 10 * time.Millisecond}
	if _, err := replay.Load(t.Context(), path, o); err == nil || !strings.Contains(err.Error(), "check that a program writes into it") {
		t.Errorf("nobody writes: %v", err)
	}

	if late, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil { // who still waits finds it empty
		_ = late.Close()
	}

	writer := harness.Must(os.OpenFile(half, os.O_RDWR, 0))(t)
	defer writer.Close()
	recording := harness.Must(os.ReadFile(recordings + "/three-pods.rec"))(t)
	ctx, end := context.WithCancel(t.Context())
	go func() {
		_, _ = writer.Write(recording[:len(recording)/2])
		end() // the first Ctrl-C
	}()
	if _, err := replay.Load(ctx, half, replay.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("half of it came: %v", err)
	}
}

// A writer that stops or drips in the middle does not hold up a command for longer than --timeout. What came is shown.
func TestAPipeWhoseWriterStops(t *testing.T) {
	plain, err := os.ReadFile(recordings + "/three-pods.rec")
	harness.Check(t, err)
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, err = zip.Write(plain)
	harness.Check(t, errors.Join(err, zip.Close()))
	firstLine := plain[:bytes.IndexByte(plain, '\n')+1]
	for name, feed := range map[string]func(w *os.File){
		"after the first line":     func(w *os.File) { _, _ = w.Write(firstLine) },
		"in the middle of a line":  func(w *os.File) { _, _ = w.Write(plain[:len(plain)/2]) },
		"inside a block of gzip":   func(w *os.File) { _, _ = w.Write(zipped.Bytes()[:zipped.Len()-20]) },
		"dripping":                 func(w *os.File) { drip(w, firstLine, plain[len(firstLine):]) },
		"one line without its end": func(w *os.File) { drip(w, firstLine, bytes.Repeat([]byte("x"), 1<<16)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pipe")
			harness.Check(t, syscall.Mkfifo(path, 0o600))
			w := harness.Must(os.OpenFile(path, os.O_RDWR, 0))(t)
			defer w.Close()
			go feed(w)
			r := harness.Must(replay.Load(t.Context(), path, replay.Options{Timeout: 300 * time.Millisecond}))(t)
			defer r.Close()
			if late := r.Incomplete(); late == nil || !strings.Contains(late.Error(), "took longer than 300ms") {
				t.Errorf("it ended with %v", late)
			}

			c := exec.CommandContext(t.Context(), os.Args[0], "show", "--timeout", "300ms", "--max-call", "1h", "-")
			c.Env = append(os.Environ(), beProgram+"=1")
			in, write, err := os.Pipe()
			harness.Check(t, err)
			defer write.Close()
			c.Stdin = in
			go feed(write)
			if said, err := c.CombinedOutput(); c.ProcessState.ExitCode() != 2 || !strings.Contains(string(said), "took longer than 300ms") {
				t.Errorf("on standard input: %v: %s", err, said)
			}
		})
	}
}

// drip writes the first part at once and the rest a byte at a time, until it cannot.
func drip(w *os.File, first, rest []byte) {
	_, err := w.Write(first)
	for i := 0; err == nil && i < len(rest); i++ {
		time.Sleep(5 * time.Millisecond)
		_, err = w.Write(rest[i : i+1])
	}
}
