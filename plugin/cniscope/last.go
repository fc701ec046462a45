package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/spool"
	"github.com/cniscope/cniscope/pkg/text"
)

// showLast draws what this node has kept. The spool is gone through as often as it is
// needed, an operation at a time: it may hold more than a node has memory to spare.
func showLast(ctx context.Context, out, diagnostics io.Writer, o showOptions) error {
	dir, err := o.spoolDir()
	if err != nil {
		return err
	}
	kept := history{dir: dir, since: time.Now().Add(-o.last)}
	found, all := false, 0
	for op, err := range kept.operations() {
		var damaged *spool.DamagedError
		switch {
		case errors.As(err, &damaged):
			fmt.Fprintf(diagnostics, "cniscope: %v; what is whole is shown\n", damaged)
			continue
		case err != nil:
			return explain(err)
		}
		all++
		found = found || o.wants(op)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if !found {
		fmt.Fprintf(diagnostics, "cniscope: no such call among the %d operations that were kept in the last %s\n", all, o.last)
		return nil
	}
	wanted := func(yield func(*tracepb.ResourceSpans) bool) {
		for op, err := range kept.operations() {
			if err == nil && o.wants(op) && (ctx.Err() != nil || !yield(op)) {
				return
			}
		}
	}
	return o.write(ctx, out, diagnostics, wanted)
}

// history is what a spool holds since a time.
type history struct {
	dir   string
	since time.Time
}

// operations yields the operations in the order they ended.
func (h history) operations() iter.Seq2[*tracepb.ResourceSpans, error] {
	return func(yield func(*tracepb.ResourceSpans, error) bool) {
		for op, err := range spool.Read(h.dir, h.since) {
			var data tracepb.TracesData
			if err == nil {
				err = proto.Unmarshal(op.Data, &data)
			}
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			for _, spans := range data.GetResourceSpans() {
				if !yield(spans, nil) {
					return
				}
			}
		}
	}
}

// spoolDir is the folder that was named, or the one that the options name.
func (o showOptions) spoolDir() (string, error) {
	if o.spool != "" {
		return o.spool, nil
	}
	file := optionsFile{path: o.options}
	options, err := file.load()
	if err != nil {
		return "", err
	}
	if options.Export.Spool.Dir == "" {
		return "", fmt.Errorf("%s sets no spool: nothing is kept on this node; set dir in [export.spool], or name a folder with --spool",
			text.Clean(optionsName(o.options), text.Bound))
	}
	return options.Export.Spool.Dir, nil
}

func optionsName(path string) string {
	if path == "" {
		return defaultOptionsFile
	}
	return path
}

// explain adds what to do about an error.
func explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: nothing was ever kept there; is it dir of [export.spool]?", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: it is readable by its owner only, most likely root", err)
	}
	return err
}

// checkLast finds what cannot be asked for together.
func (o showOptions) checkLast(args []string, set func(flag string) bool) error {
	switch {
	case len(args) == 1 && set("last"):
		return usageError{errors.New("show FILE draws a recording, show --last what this node has kept: ask for one of them")}
	case len(args) == 0 && !set("last"):
		return usageError{errors.New("name a recording, or say --last 1h for what this node has kept in its spool")}
	case !set("last") && set("spool"):
		return usageError{errors.New("--spool is where --last looks: say how far back, as --last 1h")}
	case set("last") && o.last <= 0:
		return usageError{fmt.Errorf("--last %s: want a length of time, as 30m or 1h", o.last)}
	}
	return nil
}
