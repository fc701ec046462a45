package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/pkg/firewall"
	"github.com/cniscope/cniscope/pkg/node"
	"github.com/cniscope/cniscope/pkg/probe/subprocess"
)

func runCmd() *cobra.Command {
	var file optionsFile
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Observe this node and export a trace of every CNI call",
		Long: `Observe this node and export a trace of every CNI call, until stopped.

cniscope registers with containerd as an NRI plugin. Without NRI, cniscope still traces every
call, with the pod's name and namespace from the CNI arguments. Without a destination
(export.otlp.endpoint or export.file.path), cniscope still logs each slow or failed call.

cniscope reads its configuration file again when the file changes, and on SIGHUP.

run needs CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH. root has them; cniscope
drops all others. If the kernel refuses BPF programs, cniscope observes only plugins and
commands, through the kernel's process connector. That needs CAP_NET_ADMIN in place of CAP_BPF
and CAP_PERFMON.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return node.Run(cmd.Context(), node.Options{
				Version: version(), Source: file.source(),
				Examine: func(ctx context.Context, o config.Options) ([]byte, error) {
					return json.Marshal(newDoctorDocument(doctor.Examine(ctx, doctorFlags{}.options(o))))
				},
			})
		},
	}
	file.flag(cmd)
	return cmd
}

func firewallCmd() *cobra.Command {
	return internal(node.Firewall, "List the node's chains that drop packets (for cniscope run)", firewall.Serve)
}

func connectorCmd() *cobra.Command {
	return internal(node.Connector, "Read the kernel's process connector (for cniscope run)", subprocess.Serve)
}

func internal(use, short string, do func() error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs, Hidden: true,
		RunE: func(*cobra.Command, []string) error { return do() },
	}
}
