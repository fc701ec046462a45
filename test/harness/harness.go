// Package harness holds what tests of all packages need: fatal errors, waits for other processes, addresses to listen
// on.
package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is the timeout of Eventually. It is long because a busy machine takes seconds for milliseconds of work.
const patience = time.Minute

const interval = 5 * time.Millisecond

// Check ends the test if err is not nil. It skips the test if err has a method NotBuilt: a program is missing that
// `make` builds.
func Check(t testing.TB, err error) {
	t.Helper()
	var missing interface{ NotBuilt() }
	if errors.As(err, &missing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Must returns the value of a call, and ends the test like Check if it failed: Must(os.ReadFile(file))(t).
func Must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Check(t, err)
		return value
	}
}

// Start starts a command, and kills it when the test ends.
func Start(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	Check(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
}

// Root skips the test unless it runs as root.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes namespaces, mounts, links or users")
	}
}

// Programs skips the test where one of the programs is not installed.
func Programs(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%v: `make debian-run` installs it", err)
		}
	}
}

// Terminal returns a terminal, and skips the test where there is none.
func Terminal(t testing.TB) *os.File {
	t.Helper()
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Slow skips the test with -short, which `make check` sets. `make test-slow` runs it.
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("slow: make test-slow runs it")
	}
}

// Context returns a context that ends a minute before -timeout, so that a hung test fails and cleans up.
func Context(t *testing.T) context.Context {
	t.Helper()
	deadline, is := t.Deadline()
	if !is {
		return t.Context()
	}
	ctx, cancel := context.WithDeadline(t.Context(), deadline.Add(-time.Minute))
	t.Cleanup(cancel)
	return ctx
}

// During runs something in the background until the test, or end, is over.
func During(t testing.TB, run func(context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	end = func() { cancel(); running.Wait() }
	t.Cleanup(end)
	return end
}

// Eventually waits until ok returns nil, and fails with the last error after a minute.
func Eventually(t testing.TB, ok func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := ok()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("for %s: %v", patience, err)
		}
		time.Sleep(interval)
	}
}

// Until waits until holds returns true. After a minute the test fails with the text what.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	never := errors.New("never happened: " + what)
	Eventually(t, func() error {
		if holds() {
			return nil
		}
		return never
	})
}

// Log is a text that may be read while it is written.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Contains returns an error that shows text unless it contains what.
func Contains(text, what string) error {
	if !strings.Contains(text, what) {
		return fmt.Errorf("there is no %q in:\n%s", what, text)
	}
	return nil
}

// Says reports an error for each text that said does not contain.
func Says(t testing.TB, said string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err := Contains(said, text); err != nil {
			t.Error(err)
		}
	}
}

// Equal fails the test unless got is want, and shows both behind what is said about them.
func Equal[T comparable](t testing.TB, got, want T, about ...any) {
	t.Helper()
	if got != want {
		differ(t, got, want, about)
	}
}

// EqualSlices is Equal for slices: none is as good as an empty one.
func EqualSlices[S ~[]E, E comparable](t testing.TB, got, want S, about ...any) {
	t.Helper()
	if !slices.Equal(got, want) {
		differ(t, got, want, about)
	}
}

// DeepEqual is Equal for what reflect.DeepEqual compares.
func DeepEqual(t testing.TB, got, want any, about ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		differ(t, got, want, about)
	}
}

func differ(t testing.TB, got, want any, about []any) {
	t.Helper()
	prefix := ""
	if len(about) > 0 {
		prefix = strings.TrimSpace(fmt.Sprintln(about...)) + ": "
	}
	if text, is := got.(string); is && strings.Contains(text, "\n") {
		t.Errorf("%sgot:\n%s\nwant:\n%s", prefix, got, want)
		return
	}
	t.Errorf("%sgot %s, want %s", prefix, shown(got), shown(want))
}

// shown quotes texts, alone or in a list, and writes anything else with the names of its fields.
func shown(v any) string {
	switch v.(type) {
	case string, []string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprintf("%+v", v)
}
