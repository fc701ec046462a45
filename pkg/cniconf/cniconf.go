// Package cniconf is the source of what CNI networks a node has: it reads the runtime's CNI configuration
// folder as the runtime does, and again when it changes.
//
// A network configuration may hold secrets. What goes on is only the networks' names and versions, the
// types of their plugins and IPAM delegates, and 16 bits of a digest with a secret key, by which a change is noticed, of
// all but the secrets; of a file that is broken, where, but nothing of its text.
//
// containerd adds a network of its own for the interface lo ("cni-loopback"),
// which is in no file and so is not told here.
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
)

// feature is what is done without where the folder, or some of it, cannot be read.
const feature = "CNI configuration"

// Options are what a Source is made of. All may be left empty.
type Options struct {
	Dir    string // the runtime's conf_dir, by default DefaultDir
	Digest Digest // of the networks; the zero value makes none
	Log    *slog.Logger
}

// DefaultDir is the conf_dir of containerd and of CRI-O.
func DefaultDir() string {
	if runtime.GOOS == "windows" {
		return filepath.Join(os.Getenv("ProgramFiles"), "containerd", "cni", "conf")
	}
	return "/etc/cni/net.d"
}

// Source is the source. Make it with New, run it once.
type Source struct {
	dir    string
	digest Digest
	log    *slog.Logger
	pace   pace
}

// pace is how long changes are let come to rest, and how often is looked without
// any: for folders whose changes are not reported, and for what is not watched.
type pace struct{ settle, look time.Duration }

// New makes a source; it reads nothing yet.
func New(o Options) *Source {
	return &Source{
		dir: cmp.Or(o.Dir, DefaultDir()), digest: o.Digest, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
		pace: pace{settle: 200 * time.Millisecond, look: time.Minute},
	}
}

// Name is "cniconf".
func (*Source) Name() string { return "cniconf" }

// Stats names the features that may be missing; nothing is counted.
func (*Source) Stats() source.Stats { return source.Stats{Features: []string{feature}} }

// Run reads the folder until ctx is done, and returns nil then. The sink is told all networks at first (none,
// perhaps) and whenever they have changed, and what is wrong with the folder whenever that has changed. The
// folder may come later, go, or be another one.
func (s *Source) Run(ctx context.Context, sink event.Sink) error {
	w := watch(s.dir, s.log)
	defer w.close()
	var known []event.Network
	var trouble string
	for first := true; ; first = false {
		w.renew() // before reading: what changes after that is reported
		networks, problems := Load(s.dir, s.digest)
		if first || !reflect.DeepEqual(networks, known) {
			known = networks
			sink(source.Now(&event.Networks{Networks: networks}))
			s.log.Info("CNI networks", "dir", s.dir, "networks", names(networks))
		}
		if now := sum(problems); now != trouble {
			trouble = now
			s.tell(sink, problems, trouble)
		}
		if !w.wait(ctx, s.pace) {
			return nil
		}
	}
}

func (s *Source) tell(sink event.Sink, problems []error, trouble string) {
	for _, problem := range problems {
		s.log.Warn("CNI configuration", "error", problem)
	}
	restored := trouble == ""
	sink(source.Now(&event.Degraded{Feature: feature, Restored: restored, Reason: cmp.Or(trouble, "all files can be read now")}))
}

// sum says the first of the problems, and how many there are.
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
