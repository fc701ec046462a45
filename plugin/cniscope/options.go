package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/config"
)

type optionsFile struct{ path string }

func defaultOptionsFile() string { return config.Here().File() }

func (f *optionsFile) flag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.path, "config", "c", "", "options file (default "+defaultOptionsFile()+", if it is there)")
}

func (f *optionsFile) source() config.Source {
	hostname, _ := os.Hostname() // without one, the node has no name
	base := config.FromEnvironment(os.Environ(), hostname)
	if f.path == "" {
		return config.Source{Base: base, Path: defaultOptionsFile(), Optional: true}
	}
	return config.Source{Base: base, Path: f.path}
}

func (f *optionsFile) load() (config.Options, error) {
	return f.source().Load()
}
