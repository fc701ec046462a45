// Package watch waits for changes in a directory, which may be missing or replaced.
package watch

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Watcher watches a directory, for one goroutine.
type Watcher struct {
	dir     string
	log     *slog.Logger
	notify  *fsnotify.Watcher // nil if unavailable
	watched []string
}

// New returns a Watcher of dir, or of nothing.
func New(dir string, log *slog.Logger) *Watcher {
	w := &Watcher{log: log}
	if dir == "" {
		return w
	}
	var err error
	if w.dir, err = filepath.Abs(dir); err == nil {
		w.notify, err = fsnotify.NewWatcher()
	}
	if err != nil {
		log.Warn("directory not watched, changes are seen late", "path", dir, "error", err,
			"remedy", "raise fs.inotify.max_user_instances")
	}
	return w
}

// Close stops watching.
func (w *Watcher) Close() {
	if w.notify != nil {
		_ = w.notify.Close()
	}
}

// Renew watches what has the name now, since a watch stays on a replaced directory, and the nearest parent.
func (w *Watcher) Renew() {
	if w.notify == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.rewatch()
	}()
	for { // on Windows, fsnotify blocks on unread events; the next reading covers them
		select {
		case <-w.notify.Events:
		case <-w.notify.Errors: //nolint:errcheck // what was missed is read next
		case <-done:
			return
		}
	}
}

func (w *Watcher) rewatch() {
	for _, path := range w.watched {
		_ = w.notify.Remove(path) // fails if the path is gone
	}
	w.watched = w.watched[:0]
	w.add(w.dir)
	for path := w.dir; path != filepath.Dir(path); {
		path = filepath.Dir(path)
		if w.add(path) {
			return
		}
	}
}

func (w *Watcher) add(path string) bool {
	if _, err := os.Stat(path); err != nil {
		return false
	}
	if err := w.notify.Add(path); err != nil {
		w.log.Debug("directory not watched", "path", path, "error", err)
		return false
	}
	w.watched = append(w.watched, path)
	return true
}

// Wait waits for settle after a change, for patience without one, until asked, or until ctx ends.
func (w *Watcher) Wait(ctx context.Context, settle, patience time.Duration, asks <-chan struct{}) (asked bool) {
	look := time.NewTimer(patience)
	defer look.Stop()
	var events <-chan fsnotify.Event
	var failures <-chan error
	if w.notify != nil {
		events, failures = w.notify.Events, w.notify.Errors
	}
	changed := false
	change := func() {
		if !changed {
			changed = true
			look.Reset(settle) // files are written in steps
		}
	}
	for {
		select {
		case e := <-events:
			if w.concerns(e) {
				change()
			}
		case err := <-failures: // overflow: anything may have changed
			w.log.Debug("change of a directory lost", "path", w.dir, "error", err)
			change()
		case <-asks:
			return true
		case <-look.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

func (w *Watcher) concerns(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod {
		return false
	}
	below := func(path, dir string) bool {
		const slash = string(filepath.Separator)
		return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, slash)+slash)
	}
	return below(e.Name, w.dir) || below(w.dir, e.Name)
}
