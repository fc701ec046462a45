//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A pipe that nobody writes into, and one whose writer stops in the middle, keep nobody for
// longer than was asked for.
func TestAPipeThatSaysNothing(t *testing.T) {
	path, half := filepath.Join(t.TempDir(), "pipe"), filepath.Join(t.TempDir(), "pipe")
	if err := errors.Join(syscall.Mkfifo(path, 0o600), syscall.Mkfifo(half, 0o600)); err != nil {
		t.Fatal(err)
	}
	o := showOptions{timeout: 10 * time.Millisecond}
	if _, err := o.load(t.Context(), path); err == nil || !strings.Contains(err.Error(), "does anybody write into it?") {
		t.Errorf("nobody writes: %v", err)
	}

	if late, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil { // who still waits finds it empty
		_ = late.Close()
	}

	writer, err := os.OpenFile(half, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	recording, err := os.ReadFile(recordings + "/three-pods.rec")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	go func() {
		_, _ = writer.Write(recording[:len(recording)/2])
		end() // the first Ctrl-C
	}()
	if _, err := (showOptions{}).load(ctx, half); !errors.Is(err, context.Canceled) {
		t.Errorf("half of it came: %v", err)
	}
}
