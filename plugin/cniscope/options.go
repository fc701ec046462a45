package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/show"
	"github.com/cniscope/cniscope/pkg/terminal"
)

type optionsFile struct{ path string }

func defaultOptionsFile() string { return config.Here().File() }

func (f *optionsFile) flag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.path, "config", "c", "", "configuration file (default "+defaultOptionsFile()+", if it exists)")
}

func (f *optionsFile) source() config.Source {
	hostname, _ := os.Hostname() // then the node has no name
	base := config.FromEnvironment(os.Environ(), hostname)
	if f.path == "" {
		return config.Source{Base: base, Path: defaultOptionsFile(), Optional: true}
	}
	return config.Source{Base: base, Path: f.path}
}

func (f *optionsFile) load() (config.Options, error) {
	o, err := f.source().Load()
	if f.path != "" && errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; omit --config to use the default file", err)
	}
	return o, err
}

type choice struct {
	value *string
	of    []string
}

func (c choice) String() string {
	if c.value == nil { // pflag asks a zero value
		return ""
	}
	return *c.value
}

func (choice) Type() string { return "string" }

func (c choice) Values() []string { return c.of }

func (c choice) Set(s string) error {
	if !slices.Contains(c.of, s) {
		last := len(c.of) - 1
		return fmt.Errorf("want %s", strings.TrimPrefix(strings.Join(c.of[:last], ", ")+" or "+c.of[last], " or "))
	}
	*c.value = s
	return nil
}

func formatFlag(cmd *cobra.Command, format *string, more ...string) {
	*format = "text"
	command.Formerly(cmd, "format", "output")
	cmd.Flags().VarP(choice{format, append([]string{"text", "json"}, more...)}, "output", "o", "text or json")
}

func recordingFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"rec", "gz", "etl"}, cobra.ShellCompDirectiveFilterFileExt
}

func colorFlag(root *cobra.Command) {
	color := "auto"
	root.PersistentFlags().Var(choice{&color, terminal.Modes()}, "color", "auto, always or never")
}

func colorOf(cmd *cobra.Command) string { return cmd.Flag("color").Value.String() }

func marked(cmd *cobra.Command) io.Writer {
	out := cmd.OutOrStdout()
	return show.Writer(out, terminal.ASCII(os.Getenv), terminal.Colors(colorOf(cmd), out, os.Getenv))
}
