package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/etw"
	"github.com/cniscope/cniscope/pkg/etw/etl"
)

// recordETL has Windows write a trace into a file until ctx ends, and says what is in it.
func recordETL(ctx context.Context, cmd *cobra.Command, path string, overwrite bool) error {
	if path == "-" {
		return usageError{errors.New("--etl writes a file: name one, as C:\\incident.etl")}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if err := vacant(path, overwrite); err != nil {
		return err
	}
	out := cmd.ErrOrStderr()
	lost, err := etw.RecordFile(ctx, etw.FileOptions{
		File:    path,
		Begun:   func() { fmt.Fprintf(out, "Windows records into %s; Ctrl-C ends it\n", path) },
		Missing: func(provider string, err error) { fmt.Fprintf(out, "%s is not recorded: %v\n", provider, err) },
	})
	if err != nil {
		_ = os.Remove(path)
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	what, err := summary(f)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s\nIt holds the command line of every process that ran: look who gets it.\n", path, what)
	if lost.Events+lost.Buffers > 0 {
		fmt.Fprintf(out, "Windows lost %d events and %d buffers: the trace has gaps.\n", lost.Events, lost.Buffers)
	}
	return nil
}

// vacant takes the place of a file, as one that only its owner may read; Windows writes into it.
func vacant(path string, overwrite bool) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if overwrite {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists; --overwrite replaces it", path)
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// summary says what is in a trace, in one line.
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
	if !errors.Is(err, io.EOF) {
		return "", err
	}
	parts := []string{fmt.Sprintf("%d records, %d processes started", r.Stats().Records, starts)}
	for _, p := range append([]etw.Provider{{Name: "system logger"}}, etw.Recorded()...) {
		if n := of[p.Name]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", p.Name, n))
		}
	}
	for _, counts := range []map[string]uint64{d.Unknown(), d.Malformed()} {
		for _, event := range slices.Sorted(maps.Keys(counts)) {
			parts = append(parts, fmt.Sprintf("not understood: %s (%d)", event, counts[event]))
		}
	}
	return strings.Join(parts, "; "), nil
}
