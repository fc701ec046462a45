package main

import (
	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/firewall"
	"github.com/cniscope/cniscope/pkg/node"
	"github.com/cniscope/cniscope/pkg/probe/subprocess"
)

func firewallCmd() *cobra.Command {
	return &cobra.Command{
		Use:    node.Firewall,
		Short:  "What cniscope run starts before it drops CAP_NET_ADMIN: it lists the node's chains that drop packets",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE:   func(*cobra.Command, []string) error { return firewall.Serve() },
	}
}

func connectorCmd() *cobra.Command {
	return &cobra.Command{
		Use:    node.Connector,
		Short:  "What cniscope run starts where BPF programs are refused: it reads the process connector, before others run",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE:   func(*cobra.Command, []string) error { return subprocess.Serve() },
	}
}
