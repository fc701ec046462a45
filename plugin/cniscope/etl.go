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

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/windows/etw"
	"github.com/cniscope/cniscope/pkg/windows/etw/etl"
)

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
