package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"path/filepath"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/watch"
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
	folder := ""
	if l.source.Path != "" {
		folder = filepath.Dir(l.source.Path)
	}
	w := watch.New(folder, log)
	defer w.Close()
	w.Renew()
	for {
		patience := time.Duration(math.MaxInt64)
		if l.failed != "" {
			patience = l.retry
		}
		asked := w.Wait(ctx, settle, patience, l.again)
		if ctx.Err() != nil {
			return
		}
		w.Renew() // first, so that no change is missed
		if changed := l.load(apply); asked && !changed {
			log.Info("options read again, nothing changed", "file", l.source.Path)
		}
	}
}

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
		l.log.Info("configuration file valid again", "file", source.Path)
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

func (l *Live) keep(source Source, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: put it back; an empty file means the defaults", err)
	}
	if err.Error() == l.failed {
		return
	}
	l.failed = err.Error()
	l.log.Error("configuration file invalid, keeping the old options", "file", source.Path, "error", err)
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
		l.log.Warn("options changed, restart needed", "file", source.Path, "changes", later)
	}
}
