package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	// learntPatience is how long the end waits for a disk.
	learntPatience = 2 * time.Second
	// learntName is the file's name in Options.BaselineFolder, learntPace how often it is written.
	learntName = "baseline.json"
	learntPace = 5 * time.Minute
)

// learnt keeps what is usual on a node over restarts. The zero value keeps nothing.
type learnt struct {
	dir string
	log *slog.Logger
	// key is that of the digests of configurations; fresh says that it is a new one.
	key   []byte
	fresh bool
	// writing is full while the file is written: a disk may hang.
	writing chan struct{}
}

func newLearnt(o config.Options, log *slog.Logger) learnt {
	l := learnt{dir: o.BaselineFolder(), log: log, writing: make(chan struct{}, 1)}
	l.key, l.fresh = keyIn(l.dir)
	return l
}

// load returns the saved baseline, or an empty one. It logs why a file cannot be read.
func (l learnt) load() *baseline.Document {
	empty := (&baseline.Book{}).Document()
	if l.dir == "" {
		return empty
	}
	d, err := readLearnt(l.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return empty
	case err != nil:
		l.log.Warn("baseline unreadable, starting again", "file", filepath.Join(l.dir, learntName), "reason", err)
		return empty
	}
	if l.fresh {
		d.Unconfigured()
	}
	l.log.Info("what is usual on this node is known", "file", filepath.Join(l.dir, learntName), "plugins_and_commands", len(d.Entries))
	return d
}

// save writes down what is known; a warning says if it cannot, or not before ctx ends.
func (l learnt) save(ctx context.Context, d *baseline.Document) {
	if l.dir == "" || len(d.Entries) == 0 {
		return
	}
	written := make(chan error, 1)
	select {
	case l.writing <- struct{}{}:
		go func() {
			written <- errors.Join(keepKey(l.dir, l.key), writeLearnt(l.dir, d))
			<-l.writing
		}()
	case <-ctx.Done():
	}
	var err error
	select {
	case err = <-written:
	case <-ctx.Done():
		err = errors.New("the disk does not answer")
	}
	if err != nil {
		l.log.Warn("what is usual on this node is not kept over a restart", "dir", l.dir, "reason", err)
	}
}

// usually is what is known now, written down; nothing while nothing is learnt.
func (n *node) usually() *baseline.Document {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.pipeline.Judge.Baseline {
		return (&baseline.Book{}).Document()
	}
	return n.pipeline.Usual.Document()
}

// leaveLearnt writes down what is usual at the end.
func (n *node) leaveLearnt(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, learntPatience)
	defer cancel()
	n.learnt.save(ctx, n.usually())
}

// beginLearning has the node know what was kept, where it began without.
func (n *node) beginLearning() {
	kept := n.learnt.load() // without the lock: a disk may hang
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pipeline.Usual.Len() == 0 {
		n.pipeline.Usual = kept.Book()
	}
}

// keepLearnt writes down what is usual from time to time, until ctx ends.
func (n *node) keepLearnt(ctx context.Context) {
	if n.learnt.dir == "" {
		return
	}
	for {
		select {
		case <-time.After(learntPace):
			n.learnt.save(ctx, n.usually())
		case <-ctx.Done():
			return
		}
	}
}

// reportUsual writes a line for each thing that an operation was the last to show of what is usual.
func (n *node) reportUsual(result pipeline.Result) {
	r, is := result.(*pipeline.Judged)
	if !is {
		return
	}
	for _, f := range r.Judgement.Findings {
		fields := []any{
			"node", n.name, "plugin", f.Plugin, "network", f.Network, "call", f.Command,
			"since", time.Unix(0, f.Since).UTC().Format(time.RFC3339), "verdict", f.String(),
			"median", text.Round(f.Is.Median), "before", text.Round(f.Was.Median),
		}
		if f.Key.Program != "" {
			fields = append(fields, "command", f.Key.Program)
		}
		switch f.Kind {
		case baseline.Slower:
			n.log.Warn("slower than usual", fields...)
		case baseline.Changed:
			n.log.Warn("a plugin or its configuration changed", fields...)
		case baseline.AsUsual:
			n.log.Info("as fast as usual again", fields...)
		case baseline.Ended:
			n.log.Info("slower than usual no longer", fields...)
		case baseline.Adopted:
			n.log.Info("slower for so long that it is usual now", fields...)
		}
	}
}

// errNoBaseline says that nothing was learnt, and why.
func errNoBaseline(o config.Options) error {
	if !o.Slow.Baseline {
		return errors.New("nothing is learnt: baseline is false in [slow]")
	}
	return fmt.Errorf("nothing is known yet: it is learnt while cniscope runs, and kept over restarts where baseline_dir is set in [slow], or dir in [export.spool]")
}
