// Package runtime is the source of the runtime's name and version: NRI's registrations, without containerd's socket,
// and polls.
package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	versionapi "github.com/containerd/containerd/api/services/version/v1"
	"github.com/containerd/containerd/v2/defaults"
	"google.golang.org/protobuf/types/known/emptypb"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/source"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	// DefaultAddress is containerd's socket or pipe.
	DefaultAddress = defaults.DefaultAddress
	// defaultInterval is an unreported upgrade's delay without NRI.
	defaultInterval = 30 * time.Second
	// patience is the failures until unavailability: a restarting containerd first connects NRI plugins.
	patience = 2
	answer   = 5 * time.Second
	feature  = "runtime version"
)

// Options may be empty.
type Options struct {
	Address  string
	Interval time.Duration
	Anchors  *anchor.Set
	Log      *slog.Logger
}

// Source is the source. Run it once.
type Source struct {
	options Options
	told    chan event.Runtime
}

// New returns a source, which Run starts.
func New(o Options) *Source {
	o.Address = cmp.Or(o.Address, DefaultAddress)
	o.Interval = cmp.Or(max(o.Interval, 0), defaultInterval)
	o.Anchors = cmp.Or(o.Anchors, anchor.New())
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Source{options: o, told: make(chan event.Runtime, 1)}
}

// Tell delivers NRI's name and version without blocking; safe for concurrent use.
func (s *Source) Tell(name, version string) {
	if version == "" {
		return
	}
	select {
	case <-s.told: // drop the older value
	default:
	}
	select {
	case s.told <- event.Runtime{Name: name, Version: version}:
	default: // a concurrent call delivered it
	}
}

// Name returns "runtime".
func (*Source) Name() string { return "runtime" }

// Stats has no counters.
func (*Source) Stats() source.Stats { return source.Stats{Features: []string{feature}} }

// Run polls until ctx ends, and returns nil. The sink gets changed versions, and availability.
func (s *Source) Run(ctx context.Context, sink event.Sink) error {
	var known event.Runtime
	failures, missing, told := 0, false, false
	learn := func(r event.Runtime) {
		if missing {
			sink(source.Now(&event.Degraded{Feature: feature, Restored: true, Reason: r.Name + " says it again"}))
		}
		missing = false
		if r != known {
			known = r
			sink(source.Now(&r))
		}
	}
	for {
		r, err := s.ask(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			failures = 0
			learn(r)
		} else {
			failures++
			s.options.Log.Debug("the container runtime does not answer", "error", said(err))
			if failures == patience && !told {
				missing = true
				sink(source.Now(&event.Degraded{Feature: feature, Reason: remedy(err, s.options.Address)}))
			}
		}
		select {
		case <-time.After(delay(s.options.Interval, failures, rand.Float64())):
		case r := <-s.told:
			told = true
			learn(r)
		case <-ctx.Done():
			return nil
		}
	}
}

func delay(interval time.Duration, failures int, random float64) time.Duration {
	if failures > 0 && failures < 16 {
		interval = min(interval, time.Second<<(failures-1))
	}
	return time.Duration(float64(interval) * (0.9 + random/5))
}

func (s *Source) ask(ctx context.Context) (event.Runtime, error) {
	if err := s.options.Anchors.Ask(ctx, s.options.Address); errors.Is(err, anchor.ErrStranger) {
		return event.Runtime{}, err
	}
	return Ask(ctx, s.options.Address)
}

// Ask queries a runtime within 5 s, containerd by its own API, which needs no CRI.
func Ask(ctx context.Context, address string) (r event.Runtime, err error) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	// The dialer would poll for a missing socket (containerd pkg/dialer).
	if _, err := os.Stat(address); errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	conn, err := Dial(address)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	v, err := versionapi.NewVersionClient(conn).Version(ctx, &emptypb.Empty{})
	if err == nil {
		return event.Runtime{Name: Containerd, Version: text.Clean(v.GetVersion(), text.Bound)}, nil
	}
	other, failed := cri.NewRuntimeServiceClient(conn).Version(ctx, &cri.VersionRequest{})
	if failed != nil {
		return r, err
	}
	return event.Runtime{
		Name:    text.Clean(other.GetRuntimeName(), text.Bound),
		Version: text.Clean(other.GetRuntimeVersion(), text.Bound),
	}, nil
}

func remedy(err error, address string) string {
	const without = "spans do not name the runtime's version"
	name := cmp.Or(At(address).Name, "the container runtime")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("%s has no socket %s: %s; "+
			"start the runtime, or set [runtime] socket to its socket; in a pod, mount the socket's directory",
			name, address, without)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("the socket %s of %s may not be opened: %s; run cniscope as root", address, name, without)
	}
	return fmt.Sprintf("%s at %s does not answer: %s; %s", name, address, said(err), without)
}

func said(err error) string { return text.Clean(redact.Ours().Said(err.Error()), text.Bound) }
