package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/node"
	"github.com/cniscope/cniscope/pkg/terminal"
	"github.com/cniscope/cniscope/pkg/windows/etw"
	"github.com/cniscope/cniscope/pkg/windows/etw/etl"
)

func recordCmd() *cobra.Command {
	var (
		file      optionsFile
		duration  time.Duration
		overwrite bool
		etl       bool
		quiet     bool
		format    string
	)
	cmd := &cobra.Command{
		Use:   "record FILE|-",
		Short: "Observe this node and write a recording",
		Long: `Observe this node and write every event to FILE, or to standard output (-), until Ctrl-C.
A FILE that ends in .gz is compressed. The recording contains no raw arguments, environment
variables or configurations, and only its owner can read it.

record needs root. If cniscope already runs on this node, record gets the events from that
cniscope.

On Windows, --etl makes Windows itself record processes, host networking (HNS), WMI and
containerd. "cniscope show" draws the file. It contains the command line of every process of
the node.`,
		Example: `  cniscope record incident.rec.gz --for 10m
  cniscope show incident.rec.gz
  cniscope record --etl C:\incident.etl --for 1m`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if duration < 0 {
				return command.Usagef("--for %s: want a duration, such as 10m", cmd.Flag("for").Value)
			}
			if duration > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, duration)
				defer cancel()
			}
			if args[0] == "-" && format == "json" {
				return command.Usagef("a recording goes to standard output: for -o json name a file")
			}
			if args[0] == "-" && terminal.Is(cmd.OutOrStdout()) {
				return command.Usagef("a recording goes to standard output: redirect it to a file")
			}
			if etl {
				return recordETL(ctx, cmd, args[0], overwrite)
			}
			o, err := file.load()
			if err != nil {
				return err
			}
			to := node.Recording{
				Version: version(), Path: args[0], Overwrite: overwrite, Out: cmd.OutOrStdout(), Diagnostics: cmd.ErrOrStderr(),
			}
			if format == "json" {
				to.Done = func(events, operations int) {
					_ = command.Indented(to.Out, recordDocument{"cniscope.dev/record/v1", to.Path, events, operations})
				}
			}
			if quiet {
				o.Log.Level, to.Diagnostics = "error", io.Discard
			}
			return node.Record(ctx, o, to)
		},
	}
	file.flag(cmd)
	formatFlag(cmd, &format)
	cmd.Flags().DurationVar(&duration, "for", 0, "stop after this duration, such as 10m")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print errors only")
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "replace FILE if it exists")
	cmd.Flags().BoolVar(&etl, "etl", false, "on Windows: record a trace of Windows (.etl)")
	return cmd
}

// recordDocument is docs/schemas/record.json.
type recordDocument struct {
	Schema     string `json:"schema"`
	File       string `json:"file"`
	Events     int    `json:"events"`
	Operations int    `json:"operations"`
}

func recordETL(ctx context.Context, cmd *cobra.Command, path string, overwrite bool) error {
	if path == "-" {
		return command.Usagef("--etl writes a file: name one, as C:\\incident.etl")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil && !overwrite {
		return fmt.Errorf("%s exists; --overwrite replaces it", path)
	}
	out := cmd.ErrOrStderr()
	lost, err := etw.RecordFile(ctx, etw.FileOptions{
		File:    path,
		Begun:   func() { fmt.Fprintf(out, "Windows records into %s; Ctrl-C ends it\n", path) },
		Missing: func(provider string, err error) { fmt.Fprintf(out, "%s is not recorded: %v\n", provider, err) },
	})
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	what, err := summary(f)
	fmt.Fprintf(out, "%s: %s\nIt holds the command line of every process that ran: look who gets it.\n", path, what)
	if lost.Ended {
		fmt.Fprintln(out, "Windows ended it: the file is full (512 MB), or another program stopped the session.")
	}
	if lost.Events+lost.Buffers > 0 {
		fmt.Fprintf(out, "Windows lost %d events and %d buffers: the trace has gaps.\n", lost.Events, lost.Buffers)
	}
	return err
}

func summary(file io.Reader) (string, error) {
	r, err := etl.NewReader(bufio.NewReader(file))
	if err != nil {
		return "", err
	}
	names := map[etw.GUID]string{etw.SystemProcess: "system logger"}
	for _, p := range etw.Recorded() {
		names[p.GUID] = p.Name
	}
	var rec etw.Record
	var d etw.Decoder
	of, starts := map[string]int{}, 0
	for {
		if err = r.Next(&rec); err != nil {
			break
		}
		if name := names[rec.Provider]; name != "" {
			of[name]++
		}
		if p, ok := d.Decode(&rec); ok && p.What == etw.Start && p.Provider == etw.SystemProcess {
			starts++
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	parts := []string{fmt.Sprintf("%d records, %d processes started", r.Stats().Records, starts)}
	for _, p := range append([]etw.Provider{{Name: "system logger"}}, etw.Recorded()...) {
		if n := of[p.Name]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", p.Name, n))
		}
	}
	for _, counts := range []map[string]uint64{d.Unknown, d.Malformed} {
		for _, event := range slices.Sorted(maps.Keys(counts)) {
			parts = append(parts, fmt.Sprintf("not understood: %s (%d)", event, counts[event]))
		}
	}
	return strings.Join(parts, "; "), err
}
