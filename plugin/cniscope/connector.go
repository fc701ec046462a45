package main

import (
	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/probe/subprocess"
)

// connectorCommand is the process that cniscope starts to observe by the process connector, as ps shows it.
const connectorCommand = "connector"

func connectorCmd() *cobra.Command {
	return &cobra.Command{
		Use:    connectorCommand,
		Short:  "What cniscope run starts where BPF programs are refused: it reads the process connector, before others run",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE:   func(*cobra.Command, []string) error { return subprocess.Serve() },
	}
}
