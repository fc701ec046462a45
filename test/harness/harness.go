// Package harness holds what the tests of all packages need: an error that ends a test, a wait
// for what another process does in its own time, an address to listen on.
package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// patience is when Eventually gives up. Only what never happens takes that long: a machine
// with more to do than it can takes a few seconds for what an idle one does in a few
// milliseconds.
const patience = time.Minute

// interval is how often Eventually asks.
const interval = 5 * time.Millisecond

// Check ends the test if err is not nil. One with a method NotBuilt, for a real part that `make`
// has not built, skips it.
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

// Root skips the test unless it runs as root.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: a rig makes namespaces, mounts and links")
	}
}

// Slow skips the test with -short, as `make check` runs tests. `make test-slow` runs it.
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("slow: make test-slow runs it")
	}
}

// Context returns one that ends a minute before the tests' own time is over (go test -timeout):
// what hangs fails, and what it started is still swept.
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

// Until waits until holds returns true, and fails by the name of what was waited for.
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

// Contains returns an error that shows text unless it contains what.
func Contains(text, what string) error {
	if !strings.Contains(text, what) {
		return fmt.Errorf("there is no %q in:\n%s", what, text)
	}
	return nil
}

// Says fails the test for each text that said does not contain, and shows what it is instead.
func Says(t testing.TB, said string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err := Contains(said, text); err != nil {
			t.Error(err)
		}
	}
}
