package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet/digest"
	"github.com/cniscope/cniscope/pkg/lock"
	"github.com/cniscope/cniscope/pkg/node/learned"
	"github.com/cniscope/cniscope/pkg/text"
)

func baselineCmd() *cobra.Command {
	var file optionsFile
	var format, from, to string
	cmd := &cobra.Command{
		Use:   "baseline",
		Short: "Show how long plugins and their commands usually run",
		Long: `Show the baseline that cniscope has learned. It has a row for each plugin of this node,
and for each command of a plugin. A row has the number of calls, their median duration, and a
note if they are slower now.

--export and --import give the baseline to a new node, which then recognizes slower plugins
from its first pod. If a plugin's binary differs between the nodes, the new node starts
another baseline for that plugin and compares both.

baseline asks the running cniscope, or reads the file that the last cniscope left. It needs root.`,
		Example: `  cniscope baseline
  cniscope baseline --export usual.json     on a node that has run for a while
  cniscope baseline --import usual.json     on a new one, before cniscope runs`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from != "" && to != "" {
				return command.Usagef("--export and --import are for different nodes: choose one")
			}
			o, err := file.load()
			if err != nil {
				return err
			}
			if from != "" {
				return importBaseline(cmd.ErrOrStderr(), o, from)
			}
			d, err := baselineOf(cmd.Context(), o)
			if err != nil {
				return err
			}
			switch {
			case to != "":
				return exportBaseline(cmd.OutOrStdout(), d.Foreign(), to)
			case format == "json":
				return command.Indented(cmd.OutOrStdout(), newBaselineDocument(d.Book()))
			}
			return newBaselineDocument(d.Book()).text(cmd.OutOrStdout())
		},
	}
	file.flag(cmd)
	formatFlag(cmd, &format)
	cmd.Flags().StringVar(&to, "export", "", "write the baseline to a new file, or to standard output (-)")
	cmd.Flags().StringVar(&from, "import", "", "start from the baseline of another node: a file, or standard input (-)")
	return cmd
}

func baselineOf(ctx context.Context, o config.Options) (*baseline.Document, error) {
	d, err := control.Client{Dir: o.State.Dir}.Baseline(ctx)
	if errors.Is(err, control.ErrNotRunning) && o.BaselineFolder() != "" {
		d, err = learned.Read(o.BaselineFolder())
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(d.Entries) == 0:
		return nil, errNoBaseline(o)
	case err != nil:
		return nil, fmt.Errorf("cannot read the baseline of this node: %w", err)
	}
	return d, nil
}

func errNoBaseline(o config.Options) error {
	if !o.Slow.Baseline {
		return errors.New("nothing is learnt: baseline is false in [slow]")
	}
	return errors.New("no baseline yet; cniscope learns it while it runs, " +
		"and keeps it over restarts with [slow] baseline_dir or [export.spool] dir")
}

func exportBaseline(out io.Writer, d *baseline.Document, path string) error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if path == "-" {
		_, err = out.Write(data)
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write the baseline: %w", err)
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func importBaseline(diagnostics io.Writer, o config.Options, path string) error {
	if o.BaselineFolder() == "" {
		return errors.New("this node has no directory for baselines: set baseline_dir in [slow], or dir in [export.spool]")
	}
	in := os.Stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("read the baseline: %w", err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, baseline.MaxBytes+1))
	if err != nil {
		return fmt.Errorf("read the baseline: %w", err)
	}
	d, err := baseline.Parse(data)
	if err != nil {
		return fmt.Errorf("%s: %w", text.Clean(path, text.Bound), err)
	}
	release, err := lock.Take(o.State.Dir, "cniscope baseline --import")
	if err != nil {
		return err // a running one would overwrite it
	}
	defer release()
	d = d.Foreign()
	if err := learned.Write(o.BaselineFolder(), d); err != nil {
		return fmt.Errorf("write the baseline: %w", err)
	}
	fmt.Fprintf(diagnostics, "cniscope: the next cniscope of this node begins with %s\n", digest.Count(len(d.Entries), "baseline"))
	return nil
}

// baselineDocument is docs/schemas/baseline.json.
type baselineDocument struct {
	Schema    string        `json:"schema"`
	Baselines []baselineRow `json:"baselines"`
}

type baselineRow struct {
	Network       string        `json:"network,omitempty"`
	Plugin        string        `json:"plugin"`
	Call          string        `json:"cni_command"`
	Command       string        `json:"command,omitempty"`
	Since         time.Time     `json:"since,omitzero"`
	Calls         int           `json:"calls"`
	Confident     bool          `json:"confident"`
	Median        time.Duration `json:"median_ns"`
	P99           time.Duration `json:"p99_ns"`
	Slower        bool          `json:"slower"`
	Now           time.Duration `json:"now_median_ns,omitempty"`
	Build         string        `json:"build,omitempty"`
	Configuration string        `json:"configuration,omitempty"`
}

func newBaselineDocument(b *baseline.Book) baselineDocument {
	d := baselineDocument{Schema: "cniscope.dev/baseline/v1", Baselines: []baselineRow{}}
	for _, k := range b.Known() {
		row := baselineRow{
			Network: k.Network, Plugin: k.Plugin, Call: k.Command, Command: k.Program,
			Calls: k.Usual.Calls, Confident: k.Confident, Median: k.Usual.Median, P99: k.Usual.P99,
			Slower: k.Slower, Build: k.Build, Configuration: k.Configuration,
		}
		if k.Since > 0 {
			row.Since = time.Unix(0, k.Since).UTC()
		}
		if k.Slower {
			row.Now = k.Now.Median
		}
		d.Baselines = append(d.Baselines, row)
	}
	return d
}

func (d baselineDocument) text(out io.Writer) error {
	var b strings.Builder
	head := []string{"NETWORK", "PLUGIN", "CALL", "COMMAND", "CALLS", "MEDIAN", "P99", ""}
	digest.Table(&b, head, d.Baselines, func(r baselineRow) []string {
		return []string{
			r.Network, r.Plugin, r.Call, r.Command, digest.Number(r.Calls),
			text.Round(r.Median).String(), text.Round(r.P99).String(), r.says(),
		}
	}, nil)
	_, err := io.WriteString(out, b.String())
	return err
}

func (r baselineRow) says() string {
	switch {
	case r.Slower:
		return fmt.Sprintf("slower than usual: median %s of the last 20 calls", text.Round(r.Now))
	case !r.Confident:
		return fmt.Sprintf("known from %d calls on", baseline.Enough)
	}
	return ""
}
