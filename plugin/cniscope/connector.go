package main

import (
	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/node"
	"github.com/cniscope/cniscope/pkg/probe/subprocess"
)

func connectorCmd() *cobra.Command {
	return &cobra.Command{
		Use:    node.Connector,
		Short:  "What cniscope run starts where BPF programs are refused: it reads the process connector, before others run",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE:   func(*cobra.Command, []string) error { return subprocess.Serve() },
	}
}
