package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/config"
)

type optionsFile struct{ path string }

// defaultOptionsFile is read if it is there and no other is named.
func defaultOptionsFile() string { return config.Here().File() }

func (f *optionsFile) flag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.path, "config", "c", "", "options file (default "+defaultOptionsFile()+", if it is there)")
}

// source says where the options come from: the environment, then the file.
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
