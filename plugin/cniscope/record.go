package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/lock"
	"github.com/cniscope/cniscope/pkg/nri"
	"github.com/cniscope/cniscope/pkg/record"
)

func recordCmd() *cobra.Command {
	var (
		file      optionsFile
		duration  time.Duration
		overwrite bool
	)
	cmd := &cobra.Command{
		Use:   "record FILE|-",
		Short: "Observe this node and write down what happens, to be shown or sent later",
		Long: `Observe this node and write every event into FILE (or to standard output) until
Ctrl-C. The recording holds no raw arguments, environments or configurations, and
only its owner may read it. A name that ends in .gz is compressed.

  cniscope record incident.rec.gz --for 10m
  cniscope show incident.rec.gz

Needs root. One cniscope at a time observes a node.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if duration > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, duration)
				defer cancel()
			}
			return recordTo(ctx, cmd, args[0], file, overwrite)
		},
	}
	file.flag(cmd)
	cmd.Flags().DurationVar(&duration, "for", 0, "end by itself after this time, e.g. 10m")
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "replace FILE if it exists")
	return cmd
}

func recordTo(ctx context.Context, cmd *cobra.Command, path string, file optionsFile, overwrite bool) error {
	o, err := file.load()
	if err != nil {
		return err
	}
	level := &slog.LevelVar{}
	log := newLog(o.Log.Format, level, false)
	release, err := lock.Take(o.Run.Dir)
	if err != nil {
		return err
	}
	defer release()

	s := settingsOf(o, record.Host().BootID)
	header, err := s.header()
	if err != nil {
		return err
	}
	var w *record.Writer
	if path == "-" {
		w, err = record.NewWriter(cmd.OutOrStdout(), header)
	} else {
		w, err = record.Create(path, header, overwrite)
	}
	if err != nil {
		return err
	}
	var pods *identity
	if o.NRI.Enabled {
		plugin, err := nri.New(nri.Options{Socket: o.NRI.Socket, Log: log})
		if err != nil {
			return err
		}
		pods = &identity{plugin, plugin.Attempted()}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := s.pipeline(header.BootID)
	open := &busy{}
	n := progress{w: cmd.ErrOrStderr(), live: isTerminal(cmd.ErrOrStderr())}
	err = observe(ctx, log, o, pods, open.is, func(e event.Event) {
		say(log, e)
		if err := w.Write(e); errors.Is(err, record.ErrTooLong) {
			log.Warn("an event was left out", "error", err)
		} else if err != nil {
			cancel(err)
		}
		n.events++
		n.calls += len(p.Apply(e))
		open.set(p.Open())
		n.draw(e)
		if _, tick := e.Body.(*event.Tick); tick {
			_ = w.Flush() // so that a reader, or a crash, finds what there is
		}
	})
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		err = fmt.Errorf("writing %s: %w", path, cause)
	}
	if closing := w.Close(); err == nil {
		err = closing
	}
	n.calls += len(p.Flush())
	n.done(path)
	return err
}

// progress says on a terminal what has been recorded so far.
type progress struct {
	w             io.Writer
	live          bool
	events, calls int
	last          int64
}

func (n *progress) draw(e event.Event) {
	if n.live && e.Time-n.last > int64(200*time.Millisecond) {
		n.last = e.Time
		fmt.Fprintf(n.w, "\rrecording: %d events, %d operations; Ctrl-C ends it ", n.events, n.calls)
	}
}

func (n *progress) done(path string) {
	if n.live {
		fmt.Fprint(n.w, "\r\x1b[K")
	}
	if path != "-" {
		fmt.Fprintf(n.w, "%d events, %d operations; look at them with: cniscope show %s\n", n.events, n.calls, path)
	}
}

// optionsFile is the --config flag.
type optionsFile struct{ path string }

// defaultOptionsFile is read if it is there and no other is named.
const defaultOptionsFile = "/etc/cniscope/cniscope.toml"

func (f *optionsFile) flag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.path, "config", "c", "", "options file (default "+defaultOptionsFile+", if it is there)")
}

// source says where the options come from: the environment, then the file.
func (f *optionsFile) source() (config.Source, error) {
	hostname, _ := os.Hostname() // without one, the node has no name
	base, err := config.FromEnvironment(os.Getenv, hostname)
	if err != nil {
		return config.Source{}, err
	}
	if f.path == "" {
		return config.Source{Base: base, Path: defaultOptionsFile, Optional: true}, nil
	}
	return config.Source{Base: base, Path: f.path}, nil
}

func (f *optionsFile) load() (config.Options, error) {
	s, err := f.source()
	if err != nil {
		return config.Options{}, err
	}
	return s.Load()
}
