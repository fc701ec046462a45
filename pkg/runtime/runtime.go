// Package runtime is the source of what runs the pods: the runtime's name and version, as NRI
// tells them at each registration, and as the runtime itself answers when cniscope starts
// and now and then.
//
// It asks and never changes anything; no pod waits for it. Where NRI has told, nothing
// is missing if containerd's socket cannot be reached, so that a container needs no
// access to it. Where neither is to be had, only the version is missing: that is said
// once.
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
	// DefaultAddress is containerd's socket (a pipe on Windows).
	DefaultAddress = defaults.DefaultAddress
	// DefaultInterval is how often is asked when nothing happens: a runtime without
	// NRI is upgraded unnoticed, but rarely.
	DefaultInterval = 30 * time.Second
	// patience is how many failures in a row are a loss. A restart takes a moment,
	// and containerd connects its NRI plugins before it answers anybody else.
	patience = 2
	// answer is how long one question may take.
	answer = 5 * time.Second
	// feature is what is done without where nobody says the version.
	feature = "runtime version"
)

// Options are what a Source is made of. All may be left empty.
type Options struct {
	// Address is the path of containerd's socket.
	Address  string
	Interval time.Duration
	// Anchors are told who serves it, whether it is containerd or not.
	Anchors *anchor.Set
	Log     *slog.Logger
}

// Source is the source. Make it with New, run it once.
type Source struct {
	options Options
	told    chan event.Runtime
}

// New makes a source; it asks nothing yet.
func New(o Options) *Source {
	o.Address = cmp.Or(o.Address, DefaultAddress)
	o.Interval = cmp.Or(max(o.Interval, 0), DefaultInterval)
	o.Anchors = cmp.Or(o.Anchors, anchor.New())
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Source{options: o, told: make(chan event.Runtime, 1)}
}

// Tell takes what NRI says of the runtime. It never blocks and is safe for concurrent
// use.
func (s *Source) Tell(name, version string) {
	if version == "" {
		return
	}
	select {
	case <-s.told: // what was said before does not count any more
	default:
	}
	select {
	case s.told <- event.Runtime{Name: name, Version: version}:
	default: // another registration was faster, and says the same
	}
}

// Name is "runtime".
func (*Source) Name() string { return "runtime" }

// Stats names the features that may be missing; nothing is counted.
func (*Source) Stats() source.Stats { return source.Stats{Features: []string{feature}} }

// Run asks until ctx is done, and returns nil then. The sink is told the version
// when it is known first and when it has changed, and, once, that nobody says it or
// somebody does again.
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
		switch {
		case err != nil:
			failures++
			s.options.Log.Debug("the container runtime does not answer", "error", said(err))
			if failures == patience && !told {
				missing = true
				sink(source.Now(&event.Degraded{Feature: feature, Reason: remedy(err, s.options.Address)}))
			}
		default:
			failures = 0
			learn(r)
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

// delay is the time to the next question: the interval give or take a tenth, and
// less after the first failures.
func delay(interval time.Duration, failures int, random float64) time.Duration {
	if failures > 0 && failures < 16 {
		interval = min(interval, time.Second<<(failures-1))
	}
	return time.Duration(float64(interval) * (0.9 + random/5))
}

// ask asks whoever serves the runtime's address, but a stranger. That nobody serves it is said with the version.
func (s *Source) ask(ctx context.Context) (event.Runtime, error) {
	if err := s.options.Anchors.Ask(ctx, s.options.Address); errors.Is(err, anchor.ErrStranger) {
		return event.Runtime{}, err
	}
	return Ask(ctx, s.options.Address)
}

// Ask asks the runtime at address for its name and version: containerd by its own interface, which
// answers without CRI, others by CRI's. It opens a connection for this question: to keep one open would
// only have gRPC try again and again in the background while there is nobody. It takes 5 s at most.
func Ask(ctx context.Context, address string) (r event.Runtime, err error) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	// The dialer waits for a socket that is not there, looking every 10 ms
	// (containerd pkg/dialer), instead of saying so.
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
	return event.Runtime{Name: text.Clean(other.GetRuntimeName(), text.Bound), Version: text.Clean(other.GetRuntimeVersion(), text.Bound)}, nil
}

func remedy(err error, address string) string {
	const without = "spans do not name the runtime's version"
	name := cmp.Or(At(address).Name, "the container runtime")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("%s is not to be found at %s: %s; is it running, is this its address, and in a pod: is its folder mounted?", name, address, without)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("the socket %s of %s may not be opened: %s; run cniscope as root", address, name, without)
	}
	return fmt.Sprintf("%s at %s does not answer: %s; %s", name, address, said(err), without)
}

// said returns what may leave of an error: parts of it are the runtime's.
func said(err error) string { return text.Clean(redact.Ours().Said(err.Error()), text.Bound) }
