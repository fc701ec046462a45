package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/private"
	"github.com/cniscope/cniscope/pkg/text"
	"github.com/cniscope/cniscope/pkg/usual"
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
	// writing is full while the file is written: a disk may hang.
	writing chan struct{}
}

func newLearnt(o config.Options, log *slog.Logger) learnt {
	if !o.Slow.Baseline {
		return learnt{log: log}
	}
	return learnt{o.BaselineFolder(), log, make(chan struct{}, 1)}
}

// load returns what was kept, or else nothing known: one that cannot be read is named, and begun anew.
func (l learnt) load() *usual.Document {
	empty := (&usual.Book{}).Document()
	if l.dir == "" {
		return empty
	}
	d, err := readLearnt(l.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return empty
	case err != nil:
		l.log.Warn("what is usual on this node is learnt anew", "file", filepath.Join(l.dir, learntName), "reason", err)
		return empty
	}
	l.log.Info("what is usual on this node is known", "file", filepath.Join(l.dir, learntName), "plugins_and_commands", len(d.Entries))
	return d
}

// save writes down what is known; a warning says if it cannot, or not before ctx ends.
func (l learnt) save(ctx context.Context, d *usual.Document) {
	if l.dir == "" || len(d.Entries) == 0 {
		return
	}
	written := make(chan error, 1)
	select {
	case l.writing <- struct{}{}:
		go func() {
			written <- writeLearnt(l.dir, d)
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

// readLearnt reads the baseline in a folder. It wraps fs.ErrNotExist where there is none.
func readLearnt(dir string) (*usual.Document, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err // private.Dir would make it
	}
	root, err := private.Dir(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if info, err := root.Lstat(learntName); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file: remove it")
	}
	f, err := root.Open(learntName)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseLearnt(f)
}

func parseLearnt(r io.Reader) (*usual.Document, error) {
	data, err := io.ReadAll(io.LimitReader(r, usual.MaxBytes+1))
	if err != nil {
		return nil, err
	}
	return usual.Parse(data)
}

// writeLearnt replaces the baseline in a folder as a whole: after a crash there is the old one or the new one.
func writeLearnt(dir string, d *usual.Document) error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	root, err := private.Dir(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	const fresh = learntName + ".new"
	if err := root.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // of one that was killed
	}
	f, err := root.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = root.Rename(fresh, learntName)
	}
	if err != nil {
		_ = root.Remove(fresh)
	}
	return err
}

// usually is what is known now, written down.
func (n *node) usually() *usual.Document {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pipeline.Usual.Document()
}

// leaveLearnt writes down what is usual at the end.
func (n *node) leaveLearnt(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, learntPatience)
	defer cancel()
	n.learnt.save(ctx, n.usually())
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
func reportUsual(log *slog.Logger, node string, r pipeline.Result) {
	for _, f := range r.Judgement.Findings {
		fields := []any{
			"node", node, "plugin", f.Plugin, "network", f.Network, "call", f.Command,
			"since", time.Unix(0, f.Since).UTC().Format(time.RFC3339), "verdict", f.String(),
			"median", text.Round(f.Is.Median), "before", text.Round(f.Was.Median),
		}
		if f.Key.Program != "" {
			fields = append(fields, "command", f.Key.Program)
		}
		switch f.Kind {
		case usual.Slower:
			log.Warn("slower than usual", fields...)
		case usual.Changed:
			log.Warn("a plugin or its configuration changed", fields...)
		case usual.AsUsual:
			log.Info("as fast as usual again", fields...)
		case usual.Adopted:
			log.Info("slower for so long that it is usual now", fields...)
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
