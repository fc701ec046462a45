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

// Live reloads options. It applies those that can change, logs those that need a restart, and retries after an error.
type Live struct {
	log   *slog.Logger // set by Run
	again chan struct{}
	retry time.Duration

	mu      sync.Mutex
	source  Source
	running bool
	// loaded are the latest options, now those in force.
	loaded, now Options
	failed      string // the last error, to log it once
}

// Open loads options. Errors as for Source.Load.
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

// Reload requests a reload (SIGHUP) without waiting for it.
func (l *Live) Reload() {
	select {
	case l.again <- struct{}{}:
	default: // already requested
	}
}

// Configure replaces the text of NRI's Configure, which overrides the file. Before Run it takes effect at once, or
// returns an error; during Run it requests a reload.
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

// settle is the delay after a change: editors write, rename and remove in one go.
const settle = 200 * time.Millisecond

// Run watches the file until ctx is done and calls apply with changed options, never concurrently. Call it once.
//
// It watches the directory, because editors rename files and a ConfigMap moves a link ("..data").
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
	var retrying bool // due is a retry
	soon := func() {
		if due == nil || retrying { // an earlier due time stays, since events may never end
			due, retrying = time.After(settle), false
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.again:
			if w != nil {
				_ = w.Add(l.folder()) // the directory may have been recreated
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
			// The kernel's queue overflowed.
			l.log.Debug("an event of the options' folder was lost", "error", err)
			soon()
		}
	}
}

func (l *Live) folder() string { return filepath.Dir(l.source.Path) }

// watch returns nil without a file or if watching fails.
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

// load reports whether it logged something.
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
