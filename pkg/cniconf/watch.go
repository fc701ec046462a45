package cniconf

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

type watcher struct {
	dir     string
	log     *slog.Logger
	notify  *fsnotify.Watcher // nil if unavailable
	watched []string
}

func watch(dir string, log *slog.Logger) *watcher {
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	w := &watcher{dir: dir, log: log}
	var err error
	if w.notify, err = fsnotify.NewWatcher(); err != nil {
		log.Warn("CNI configuration: changes are seen late; is fs.inotify.max_user_instances used up?", "error", err)
	}
	return w
}

func (w *watcher) close() {
	if w.notify != nil {
		_ = w.notify.Close()
	}
}

// renew watches what has the name now, since a watch stays on a replaced directory, and the nearest parent.
func (w *watcher) renew() {
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

func (w *watcher) rewatch() {
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

func (w *watcher) add(path string) bool {
	if _, err := os.Stat(path); err != nil {
		return false
	}
	if err := w.notify.Add(path); err != nil {
		w.log.Debug("CNI configuration: not watched", "path", path, "error", err)
		return false
	}
	w.watched = append(w.watched, path)
	return true
}

func (w *watcher) wait(ctx context.Context, p pace) bool {
	look := time.NewTimer(p.look)
	defer look.Stop()
	var events <-chan fsnotify.Event
	var failures <-chan error
	if w.notify != nil {
		events, failures = w.notify.Events, w.notify.Errors
	}
	changed := false
	for {
		select {
		case e, ok := <-events:
			switch {
			case !ok:
				events = nil
			case !changed && w.concerns(e):
				changed = true
				look.Reset(p.settle) // files are written in steps
			}
		case err, ok := <-failures: // overflow: anything may have changed
			switch {
			case !ok:
				failures = nil
			case !changed:
				w.log.Debug("CNI configuration: watching", "error", err)
				changed = true
				look.Reset(p.settle)
			}
		case <-look.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

func (w *watcher) concerns(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod {
		return false
	}
	below := func(path, dir string) bool {
		return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
	}
	return below(e.Name, w.dir) || below(w.dir, e.Name)
}
