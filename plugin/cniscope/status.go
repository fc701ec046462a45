package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/install"
)

func statusCmd() *cobra.Command {
	var format, root string
	var file optionsFile
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the installed files and whether cniscope is running",
		Long: `Show the installed files, whether they were changed since the installation, whether containerd
needs a restart, and whether cniscope is running and registered with NRI.

status changes nothing. Without root it shows less. The exit code is 1 if cniscope is neither
installed nor running.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := installed(cmd.Context(), root, file)
			if err != nil {
				return err
			}
			if format == "json" {
				o, _ := file.load() // else the node has no name
				err = command.Indented(cmd.OutOrStdout(), statusDocument{"cniscope.dev/status/v1", o.Resource.Node, s})
			} else {
				err = tell(cmd.OutOrStdout(), s)
			}
			if err == nil && !s.Installed && s.Running == nil { // as in a DaemonSet
				err = errors.New(notInstalled)
			}
			return err
		},
	}
	file.flag(cmd)
	formatFlag(cmd, &format)
	cmd.Flags().StringVar(&root, "root", "/", "look at the file tree below this directory")
	return cmd
}

// statusDocument is docs/schemas/status.json.
type statusDocument struct {
	Schema string `json:"schema"`
	Node   string `json:"node,omitempty"`
	*install.Status
}

func tell(out io.Writer, s *install.Status) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	row := func(what, format string, a ...any) { fmt.Fprintf(w, "%s\t%s\n", what, fmt.Sprintf(format, a...)) }
	switch {
	case s.Package == "package":
		row("installed", "as service, by a package")
	case s.Package != "":
		row("installed", "as service, by a %s package", s.Package)
	case s.Installed && s.Choice.As != "":
		row("installed", "as %s, by cniscope install", s.Choice.As)
	case s.Running != nil:
		row("installed", "no, but cniscope is running")
	}
	for _, f := range s.Files {
		row("", "%s\t%s", f.Path, f.State)
	}
	if s.Unit != "" {
		row(serviceKind, serviceName+" is %s", s.Unit)
		if s.UnitSays != "" {
			row("", "it says: %s", s.UnitSays)
		}
	}
	if c := s.Containerd; c.Version != "" {
		row("containerd", "%s (%s)", c.Version, c.From)
		if c.PID > 0 {
			row("", "process %d, since %s", c.PID, c.Since.UTC().Format("2006-01-02 15:04:05Z"))
		}
		state := "off"
		if c.NRI {
			state = "on, " + c.Socket
		}
		row("NRI", "%s", state)
		for _, f := range c.Unread {
			row("", "%s is newer than containerd: restart it", f)
		}
	}
	if r := s.Running; r != nil {
		by := ""
		if r.StartedBy != "" {
			by = ", " + r.StartedBy
		}
		row("running", "cniscope %s, process %d%s", r.Version, r.PID, by)
		row("", "kernel probe: %s", r.Probe)
		if r.Missed > 0 {
			row("", "BPF programs that the kernel skipped because another one ran on that CPU: %d times", r.Missed)
		}
		row("", "NRI: %s", r.NRI)
		for _, who := range r.Trusted {
			row("", "trusted: %s", who)
		}
	}
	for _, u := range s.Unknown {
		row("note", "%s", u)
	}
	return w.Flush()
}
