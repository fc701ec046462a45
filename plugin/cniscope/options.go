package main

import (
	"context"
	"log/slog"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/config"
)

// liveOptions are the options of a running cniscope: the file, and on top of it what NRI
// hands over. That comes when the runtime has taken the plugin, so until begin is called
// it may change every option; afterwards only those that can change while running.
type liveOptions struct {
	log *slog.Logger

	mu     sync.Mutex
	source config.Source
	live   *config.Live
	begun  bool
}

func newOptions(file optionsFile, log *slog.Logger) (*liveOptions, error) {
	source, err := file.source()
	if err != nil {
		return nil, err
	}
	live, err := config.Open(source, log)
	if err != nil {
		return nil, err
	}
	return &liveOptions{log: log, source: source, live: live}, nil
}

// configure takes the text of NRI's Configure. An error leaves the options as they were.
func (o *liveOptions) configure(text string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun {
		o.live.Configure(text)
		return nil
	}
	source := o.source
	source.Text = text
	live, err := config.Open(source, o.log)
	if err != nil {
		return err
	}
	o.source, o.live = source, live
	return nil
}

// begin returns the options to start with.
func (o *liveOptions) begin() config.Options {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun = true
	return o.live.Options()
}

func (o *liveOptions) reload() { o.live.Reload() }

// run watches for changes until ctx ends. Call it after begin.
func (o *liveOptions) run(ctx context.Context, apply func(config.Options)) { o.live.Run(ctx, apply) }

// optionsFile is the --config flag.
type optionsFile struct{ path string }

// defaultOptionsFile is read if it is there and no other is named.
const defaultOptionsFile = "/etc/cniscope/cniscope.toml"

func (f *optionsFile) flag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.path, "config", "c", "", "options file (default "+defaultOptionsFile+", if it is there)")
}

// source says where the options come from: the environment, then the file.
func (f *optionsFile) source() (config.Source, error) {
	hostname, _ := os.Hostname() // without one, the node has no name
	base, err := config.FromEnvironment(os.Getenv, hostname)
	if err != nil {
		return config.Source{}, err
	}
	if f.path == "" {
		return config.Source{Base: base, Path: defaultOptionsFile, Optional: true}, nil
	}
	return config.Source{Base: base, Path: f.path}, nil
}

func (f *optionsFile) load() (config.Options, error) {
	s, err := f.source()
	if err != nil {
		return config.Options{}, err
	}
	return s.Load()
}
