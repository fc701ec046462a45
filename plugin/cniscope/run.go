package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/pkg/node"
)

func runCmd() *cobra.Command {
	var file optionsFile
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Observe this node and export a trace of every CNI call",
		Long: `Observe this node and export a trace of every CNI call, until told to end.

It registers with containerd by NRI, as an external plugin, or as a pre-installed one
when containerd started it. Without NRI every call is still traced, with the identity
that CNI gives. Without a destination (export.otlp.endpoint or export.file.path) it
still writes a log line for each call that was slow or failed.

The options are read again when their file changes, and on SIGHUP.

Needs root, or CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH. Where the
kernel refuses BPF programs it observes plugins and commands alone, by the process
connector, which needs CAP_NET_ADMIN in place of the first two.`,
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
