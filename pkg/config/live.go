package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Live keeps options up to date while cniscope runs. What can change at once is
// handed out; what cannot is named in the log. A file that is wrong or gone
// changes nothing: the options stay as they are, the log says why, and it is
// read again every few seconds.
type Live struct {
	log   *slog.Logger // of Run
	again chan struct{}
	// retry is how long after a failure the file is read again: a disk or a mount may be back by then, or a
	// certificate that the options name.
	retry time.Duration

	mu     sync.Mutex
	source Source
	// running: Run was called, and what needs a restart has been used.
	running bool
	// loaded is what was read last, now what is in force: they differ in options that need a restart.
	loaded, now Options
	failed      string // error of the last load, so that it is said once
}

// Open loads options for the first time. The error is Source.Load's.
func Open(source Source) (*Live, error) {
	o, err := source.Load()
	if err != nil {
		return nil, err
	}
	source.Optional = source.stillOptional()
	return &Live{again: make(chan struct{}, 1), retry: retry, source: source, loaded: o, now: o}, nil
}

// Options returns the options in force.
func (l *Live) Options() Options {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// Reload asks for the options to be read again (SIGHUP). It does not block and
// does not wait for it to happen.
func (l *Live) Reload() {
	select {
	case l.again <- struct{}{}:
	default: // one is asked for already
	}
}

// Configure puts the text of NRI's Configure on top of the file, in place of the one before. Before Run all
// of it is in force when Configure returns; with an error, which is Source.Load's, nothing has changed. Later
// it does not block: what it changes is handed out as if the file had changed.
func (l *Live) Configure(text string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	source := l.source
	source.Text = text
	if !l.running {
		o, err := source.Load()
		if err != nil {
			return err
		}
		l.loaded, l.now = o, o
	}
	l.source = source
	if l.running {
		l.Reload()
	}
	return nil
}

const retry = 5 * time.Second

// settle is how long changes in the folder are gathered before the file is read:
// an editor writes, renames and removes in one go.
const settle = 200 * time.Millisecond

// Run watches until ctx is done and calls apply with the options in force after every change of a live one.
// Calls of apply never overlap. Call Run once. What has changed is logged.
//
// The file's folder is watched, not the file: editors rename a new file over the
// old one, and in a Kubernetes ConfigMap it is a link ("..data") that moves.
func (l *Live) Run(ctx context.Context, log *slog.Logger, apply func(Options)) {
	l.log = log
	l.mu.Lock()
	l.running = true
	l.mu.Unlock()
	var events <-chan fsnotify.Event
	var lost <-chan error
	w := l.watch()
	if w != nil {
		defer w.Close()
		events, lost = w.Events, w.Errors
	}
	var due <-chan time.Time
	var retrying bool // due is the next try of what failed
	soon := func() {
		if due == nil || retrying { // what is due soon already is not put off: there may be no end of events
			due, retrying = time.After(settle), false
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.again:
			if w != nil {
				_ = w.Add(l.folder()) // it may have been made anew since
			}
			if !l.load(apply) {
				l.log.Info("options read again, nothing changed", "file", l.source.Path)
			}
			due, retrying = l.later()
		case <-due:
			l.load(apply)
			due, retrying = l.later()
		case <-events:
			soon()
		case err := <-lost:
			// The kernel's queue overflowed: something may have changed.
			l.log.Debug("an event of the options' folder was lost", "error", err)
			soon()
		}
	}
}

func (l *Live) folder() string { return filepath.Dir(l.source.Path) }

// watch returns nil where there is no file or nothing can be watched, as on a node
// whose inotify instances are used up.
func (l *Live) watch() *fsnotify.Watcher {
	if l.source.Path == "" {
		return nil
	}
	w, err := fsnotify.NewWatcher()
	if err == nil {
		err = w.Add(l.folder())
	}
	if err != nil {
		l.log.Warn("the options' folder is not watched: send SIGHUP after a change", "file", l.source.Path, "error", err)
	}
	return w
}

// load reads the options again, hands out what changed, and reports whether there was anything to say.
func (l *Live) load(apply func(Options)) bool {
	l.mu.Lock()
	source, before, now := l.source, l.loaded, l.now
	l.mu.Unlock()

	next, err := source.Load()
	if err != nil {
		l.keep(source, err)
		return true
	}
	if l.failed != "" {
		l.log.Info("the options can be used again", "file", source.Path)
		l.failed = ""
	}
	changes := next.Changes(before)
	inForce := now.running(next)
	l.mu.Lock()
	l.loaded, l.now = next, inForce
	l.source.Optional = source.stillOptional()
	l.mu.Unlock()
	l.say(source, changes)
	if len(inForce.Changes(now)) > 0 {
		apply(inForce)
	}
	return len(changes) > 0
}

// later is when the file is to be read again of itself: where that failed.
func (l *Live) later() (due <-chan time.Time, retrying bool) {
	if l.failed == "" {
		return nil, false
	}
	return time.After(l.retry), true
}

func (l *Live) keep(source Source, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: put it back; an empty file means the defaults", err)
	}
	if err.Error() == l.failed {
		return
	}
	l.failed = err.Error()
	l.log.Error("the new options cannot be used, the old ones stay", "file", source.Path, "error", err)
}

func (l *Live) say(source Source, changes []Change) {
	var live, later []string
	for _, c := range changes {
		if c.Live {
			live = append(live, c.String())
		} else {
			later = append(later, c.String())
		}
	}
	if len(live) > 0 {
		l.log.Info("options changed", "file", source.Path, "changes", live)
	}
	if len(later) > 0 {
		l.log.Warn("options changed, but not in force before a restart", "file", source.Path, "changes", later)
	}
}
