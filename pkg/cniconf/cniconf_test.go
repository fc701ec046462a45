package cniconf

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

// seen keeps the latest events of each kind.
type seen struct {
	mu       sync.Mutex
	networks []string
	told     int
	degraded []event.Degraded
}

func (s *seen) sink(e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch body := e.Body.(type) {
	case *event.Networks:
		s.told++
		s.networks = []string{}
		for _, n := range body.Networks {
			s.networks = append(s.networks, n.Name)
		}
	case *event.Degraded:
		s.degraded = append(s.degraded, *body)
	}
}

func (s *seen) eventually(t *testing.T, networks []string, broken string) {
	t.Helper()
	harness.Eventually(t, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		last := event.Degraded{Restored: true}
		if n := len(s.degraded); n > 0 {
			last = s.degraded[n-1]
		}
		if reflect.DeepEqual(s.networks, networks) && last.Restored == (broken == "") && strings.Contains(last.Reason, broken) {
			return nil
		}
		return fmt.Errorf("told %v and %+v; want %v and %q", s.networks, last, networks, broken)
	})
}

// start runs a source that relies on notifications.
func start(t *testing.T, dir string) *seen {
	t.Helper()
	s, told := New(Options{Dir: dir}), new(seen)
	s.pace = pace{settle: time.Millisecond, look: time.Hour}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, told.sink) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return told
}

func write(t *testing.T, file, name string) {
	t.Helper()
	harness.Check(t, os.WriteFile(file, []byte(`{"name":"`+name+`","plugins":[{"type":"bridge"}]}`), 0o600))
}

// The event has the first problem, the log the others.
func TestEachProblemIsReportedOnce(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"1.conflist", "2.conflist"} {
		harness.Check(t, os.WriteFile(filepath.Join(dir, name), []byte("{"), 0o600))
	}
	var log strings.Builder
	s, told := New(Options{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))}), new(seen)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	harness.Check(t, s.Run(ctx, told.sink))
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "2.conflist") || !strings.Contains(told.degraded[0].Reason, "1.conflist") {
		t.Errorf("%+v\n%s", told.degraded, log.String())
	}
}

// The directory is missing, empty, changed, broken, removed and replaced.
func TestChangesAreTold(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "etc", "cni", "net.d")
	told := start(t, dir)
	told.eventually(t, []string{}, "no CNI configuration directory "+dir)

	harness.Check(t, os.MkdirAll(dir, 0o700))
	told.eventually(t, []string{}, "")

	write(t, filepath.Join(dir, "10.conflist"), "one")
	told.eventually(t, []string{"one"}, "")
	write(t, filepath.Join(dir, "05.conflist"), "two")
	told.eventually(t, []string{"two", "one"}, "")

	harness.Check(t, os.WriteFile(filepath.Join(dir, "05.conflist"), []byte("{"), 0o600))
	told.eventually(t, []string{"one"}, "05.conflist: line 1")
	harness.Check(t, os.Remove(filepath.Join(dir, "05.conflist")))
	told.eventually(t, []string{"one"}, "")

	// Another directory of the same name.
	other := filepath.Join(root, "etc", "cni", "other")
	harness.Check(t, os.Mkdir(other, 0o700))
	write(t, filepath.Join(other, "10.conflist"), "three")
	harness.Check(t, errors.Join(os.Rename(dir, dir+".old"), os.Rename(other, dir)))
	told.eventually(t, []string{"three"}, "")
	write(t, filepath.Join(dir, "20.conflist"), "four") // the new one is watched
	told.eventually(t, []string{"three", "four"}, "")

	harness.Check(t, os.RemoveAll(dir))
	told.eventually(t, []string{}, "no CNI configuration directory")
}

// follows skips tests of links under wine, which does not follow its own links to directories.
func follows(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("links to folders were never tried on Windows itself")
	}
}

// A ConfigMap replaces a link that the files' links go through. Or the directory's name is a link that is replaced.
func TestSwappedLinks(t *testing.T) {
	follows(t)
	for name, link := range map[string]string{"of files": "..data", "of the directory": "net.d"} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, version := range []string{"v1", "v2"} {
				harness.Check(t, os.Mkdir(filepath.Join(root, version), 0o700))
				write(t, filepath.Join(root, version, "10.conflist"), version)
			}
			if err := os.Symlink("v1", filepath.Join(root, link)); err != nil {
				t.Skip("no symbolic links here:", err)
			}
			dir := filepath.Join(root, link)
			if link == "..data" {
				dir = root
				harness.Check(t, os.Symlink("..data/10.conflist", filepath.Join(dir, "10.conflist")))
			}
			told := start(t, dir)
			told.eventually(t, []string{"v1"}, "")
			harness.Check(t, errors.Join(os.Symlink("v2", filepath.Join(root, "new")), os.Rename(filepath.Join(root, "new"), filepath.Join(root, link))))
			told.eventually(t, []string{"v2"}, "")
			write(t, filepath.Join(dir, "20.conflist"), "more")
			told.eventually(t, []string{"v2", "more"}, "")
		})
	}
}

// Unchanged networks are not reported again.
func TestSameIsToldOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "10.conflist"), "one")
	told := start(t, dir)
	told.eventually(t, []string{"one"}, "")
	for range 5 {
		write(t, filepath.Join(dir, "10.conflist.new"), "one")
		harness.Check(t, os.Rename(filepath.Join(dir, "10.conflist.new"), filepath.Join(dir, "10.conflist")))
	}
	write(t, filepath.Join(dir, "20.conflist"), "two")
	told.eventually(t, []string{"one", "two"}, "")
	if told.mu.Lock(); told.told != 2 {
		t.Errorf("told %d times, want twice", told.told)
	}
	told.mu.Unlock()
}
