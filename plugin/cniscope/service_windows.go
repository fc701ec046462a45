package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/install"
	"github.com/cniscope/cniscope/pkg/node"
	"github.com/cniscope/cniscope/pkg/windows/service"
	"github.com/cniscope/cniscope/pkg/windows/trial"
)

const (
	serviceKind = "service"
	serviceName = node.ServiceName

	notInstalled = "cniscope is not installed: there is no service cniscope; run cniscope install"
)

func asService(program func(context.Context) int) (code int, is bool) {
	if !service.Is() {
		return 0, false
	}
	code, err := service.Run(serviceName, node.ShutdownMax(), func(ctx context.Context, up func()) int {
		return program(node.WithStarted(ctx, up))
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "cniscope:", err)
	}
	return code, true
}

// installation has only doctor's self-test (docs/windows.md).
func installation() []*cobra.Command {
	return []*cobra.Command{{
		Use: trial.Command, Short: "Wait for the end of the standard input, for doctor", Args: cobra.NoArgs, Hidden: true,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.Copy(io.Discard, os.Stdin)
			return err
		},
	}}
}

func installed(ctx context.Context, root string, file optionsFile) (*install.Status, error) {
	if root != "/" {
		return nil, command.Usagef("--root is for Linux")
	}
	s := &install.Status{}
	unknown := func(err error) {
		if err != nil {
			s.Unknown = append(s.Unknown, err.Error())
		}
	}
	var err error
	s.Unit, err = service.State(serviceName)
	unknown(err)
	s.Installed = s.Unit != ""
	options, err := file.load()
	if err != nil {
		unknown(err)
		options = config.Default()
	}
	running, err := control.Client{Dir: options.State.Dir}.Node(ctx)
	if err != nil {
		unknown(err)
		return s, nil
	}
	s.Running = &install.Running{Node: running}
	return s, nil
}
