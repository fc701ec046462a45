// Package cniconf is an event source that reads the runtime's CNI configuration directory.
//
// A configuration can hold secrets. Events carry names, versions, types, and 16 bits of a keyed digest without
// secrets.
package cniconf

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/source"
	"github.com/cniscope/cniscope/pkg/text"
	"github.com/cniscope/cniscope/pkg/watch"
)

const feature = "CNI configuration"

// Options configure a Source; all are optional.
type Options struct {
	Dir    string // default: the conf_dir of containerd and CRI-O
	Digest Digest
	Log    *slog.Logger
}

func defaultDir() string {
	if runtime.GOOS == "windows" {
		return filepath.Join(os.Getenv("ProgramFiles"), "containerd", "cni", "conf")
	}
	return "/etc/cni/net.d"
}

// Source reads the CNI directory, in one Run.
type Source struct {
	o    Options
	pace pace
}

// pace is the delay after a change, and the polling interval.
type pace struct{ settle, look time.Duration }

// New returns a source.
func New(o Options) *Source {
	o.Dir, o.Log = cmp.Or(o.Dir, defaultDir()), cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Source{o, pace{settle: 200 * time.Millisecond, look: time.Minute}}
}

// Name is "cniconf".
func (*Source) Name() string { return "cniconf" }

// Stats names the degradable feature.
func (*Source) Stats() source.Stats { return source.Stats{Features: []string{feature}} }

// Run reads the directory until ctx is done, then returns nil. It sends all networks first, possibly none, then
// changes. The directory may be missing, appear, or be replaced.
func (s *Source) Run(ctx context.Context, sink event.Sink) error {
	w := watch.New(s.o.Dir, s.o.Log)
	defer w.Close()
	var known []event.Network
	var trouble string
	for first := true; ; first = false {
		w.Renew() // first, so that no change is missed
		networks, problems := Load(s.o.Dir, s.o.Digest)
		if first || !reflect.DeepEqual(networks, known) {
			known = networks
			sink(source.Now(&event.Networks{Networks: networks}))
			s.o.Log.Info("CNI networks", "dir", s.o.Dir, "networks", names(networks))
		}
		if now := sum(problems); now != trouble {
			trouble = now
			for _, problem := range problems[min(1, len(problems)):] { // the first is the reason
				s.o.Log.Warn("cannot read CNI configuration", "error", problem)
			}
			sink(source.Now(&event.Degraded{
				Feature: feature, Restored: trouble == "", Reason: cmp.Or(trouble, "all files can be read now"),
			}))
		}
		w.Wait(ctx, s.pace.settle, s.pace.look, nil)
		if ctx.Err() != nil {
			return nil
		}
	}
}

func sum(problems []error) string {
	switch len(problems) {
	case 0:
		return ""
	case 1:
		return problems[0].Error()
	}
	return fmt.Sprintf("%s (and %d more)", problems[0], len(problems)-1)
}

func names(networks []event.Network) string {
	var all []string
	for _, n := range networks {
		all = append(all, n.Name)
	}
	return text.Clean(strings.Join(all, ", "), text.Bound)
}
