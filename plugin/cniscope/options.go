package main

import (
	"context"
	"log/slog"
	"sync"

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
