package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/install"
	"github.com/cniscope/cniscope/pkg/install/onwindows"
)

// installation are the commands that change what is on a node.
func installation() []*cobra.Command {
	return []*cobra.Command{installCmd(), uninstallCmd(), trialCmd()}
}

// trialCmd is what doctor starts to see how soon it is seen: it lives until its standard input ends.
func trialCmd() *cobra.Command {
	return &cobra.Command{
		Use: "trial", Short: "Wait for the end of the standard input, for doctor", Args: cobra.NoArgs, Hidden: true,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.Copy(io.Discard, os.Stdin)
			return err
		},
	}
}

func installCmd() *cobra.Command {
	var dryRun bool
	var tracing string
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install cniscope on this node, as a service",
		Long: `Install cniscope on this node: the program (%ProgramFiles%\cniscope\cniscope.exe), its
options (%ProgramData%\cniscope\cniscope.toml, in a folder that only administrators and the
system can open), a service that is started with Windows and again after failures, and its
source in the event log. Then it starts the service.

With --containerd-tracing, containerd's service gets the variables by which containerd exports
its own spans (OTEL_EXPORTER_OTLP_*); other variables stay. containerd reads them when it is
started again, which is left to you.

Install does everything or nothing. Running it again is safe: it upgrades its own files,
keeps your edits and remembers your choices. See also: cniscope uninstall, status.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n := &onwindows.Here{}
			o, err := onwindows.Folders()
			if err != nil {
				return err
			}
			before, _, err := onwindows.Remembered(n, o)
			if err != nil {
				return asAdministrator(err)
			}
			switch {
			case !cmd.Flags().Changed("containerd-tracing"):
				o.Choice = before
			case tracing != "off":
				o.Tracing = tracing
			}
			program, err := os.Executable()
			if err == nil {
				o.Program, err = os.ReadFile(program)
			}
			if err != nil {
				return fmt.Errorf("reading the program to install: %w", err)
			}
			plan, err := onwindows.New(n, o)
			if err != nil {
				return asAdministrator(err)
			}
			return carryOut(cmd, n, plan, dryRun)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&dryRun, "dry-run", false, "only show what would be changed, as a unified diff")
	f.StringVar(&tracing, "containerd-tracing", "", "have containerd export its own spans to this URL; off to stop that")
	return cmd
}

func uninstallCmd() *cobra.Command {
	var purge, dryRun bool
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Take away what cniscope install has put on this node",
		Long: `Take away what cniscope install has put on this node, and leave everything else as it was
before. Files that you changed since, as options usually are, stay; --purge removes them,
too. Operations on disk ([export.spool]) stay. Windows deletes no program that runs: this one is
moved out of its folder, and deleted when Windows starts again.

It does not restart containerd, and tells you if that is needed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n := &onwindows.Here{}
			o, err := onwindows.Folders()
			if err != nil {
				return err
			}
			plan, err := onwindows.NewRemoval(n, o, purge)
			if err != nil {
				return asAdministrator(err)
			}
			return carryOut(cmd, n, plan, dryRun)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&purge, "purge", false, "remove also files that were changed since they were installed")
	f.BoolVar(&dryRun, "dry-run", false, "only show what would be changed, as a unified diff")
	return cmd
}

func carryOut(cmd *cobra.Command, n *onwindows.Here, plan *onwindows.Plan, dryRun bool) error {
	out := cmd.OutOrStdout()
	if dryRun {
		if !plan.Changes() {
			fmt.Fprintln(out, "nothing would be changed")
		}
		fmt.Fprint(out, plan.Diff())
		return notes(out, plan.Notes)
	}
	if err := plan.Apply(cmd.Context(), n); err != nil {
		return asAdministrator(err)
	}
	for _, s := range plan.Steps {
		line := fmt.Sprintf("%-9s %s", s.Does, s.Thing)
		if s.Why != "" {
			line += ": " + s.Why
		}
		fmt.Fprintln(out, line)
	}
	return notes(out, slices.Concat(plan.Notes, n.Notes))
}

func asAdministrator(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w; be an administrator: run it from an elevated prompt", err)
	}
	return err
}

// installed finds out what is installed here, and whether it is at work. It goes on past what it cannot find out.
func installed(ctx context.Context, root string) (*install.Status, error) {
	if root != "/" {
		return nil, usageError{errors.New("--root: there are no images of Windows to look at")}
	}
	n := &onwindows.Here{}
	o, err := onwindows.Folders()
	if err != nil {
		return nil, err
	}
	things, err := onwindows.States(n, o)
	if err != nil {
		return nil, asAdministrator(err)
	}
	s := &install.Status{Installed: len(things) > 0}
	s.Choice.As = install.Service
	if before, _, err := onwindows.Remembered(n, o); err == nil {
		s.Choice.Tracing = before.Tracing
	}
	for _, t := range things {
		s.Files = append(s.Files, install.File{Path: t.Thing.String(), State: t.Is})
	}
	if s.Unit, err = n.State(serviceName); err != nil {
		s.Unknown = append(s.Unknown, err.Error())
	}
	options, err := (&optionsFile{}).load()
	if err != nil {
		s.Unknown = append(s.Unknown, err.Error())
		options = config.Default()
	}
	node, err := control.Client{Dir: options.State.Dir}.Node(ctx)
	if err != nil {
		s.Unknown = append(s.Unknown, err.Error())
		return s, nil
	}
	s.Running = &install.Running{Node: node}
	return s, nil
}
