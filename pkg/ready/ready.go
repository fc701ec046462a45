// Package ready is the source of the runtime's network readiness, without which the node gets no pods. It reports an
// unreachable runtime once.
package ready

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/runtime"
	"github.com/cniscope/cniscope/pkg/source"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	// kubelet polls every 5 s; a poll may run a plugin (STATUS, CNI 1.1)
	every = 10 * time.Second
	soon  = time.Second
	// settle delays an outage's end: cniconf reads a new file, its usual cause, 200 ms later.
	settle = 300 * time.Millisecond
	answer = 5 * time.Second
	// patience is the failures until unavailability.
	patience = 3
	looks    = 5 * time.Second
	feature  = "network readiness"
)

// Source polls the runtime. Run it once.
type Source struct {
	Address string
	Look    func(context.Context) (event.Lack, string)
	Overdue time.Duration
}

// Name returns "ready".
func (Source) Name() string { return "ready" }

// Stats has no counters.
func (Source) Stats() source.Stats { return source.Stats{Features: []string{feature}} }

// Run polls until ctx ends, and returns nil.
func (s Source) Run(ctx context.Context, sink event.Sink) error {
	conn, err := runtime.Dial(s.Address)
	status := func(context.Context) (*cri.StatusResponse, error) { return nil, err }
	if err == nil {
		defer conn.Close()
		client := cri.NewRuntimeServiceClient(conn)
		status = func(ctx context.Context) (*cri.StatusResponse, error) {
			return client.Status(ctx, &cri.StatusRequest{})
		}
	}
	s.watch(ctx, sink, status)
	return nil
}

func (s Source) watch(ctx context.Context, sink event.Sink, status func(context.Context) (*cri.StatusResponse, error)) {
	var known *event.Readiness
	var out outage
	for failures := 0; ; {
		now, err := ask(ctx, status)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			if failures++; failures == patience {
				sink(source.Now(&event.Degraded{
					Feature: feature,
					Reason: fmt.Sprintf("the runtime does not answer at %s: %s; how long the node's network is not ready is not "+
						"seen", s.Address, foreign(err.Error())),
				}))
			}
		} else {
			if failures >= patience {
				sink(source.Now(&event.Degraded{Feature: feature, Reason: "the runtime answers", Restored: true}))
			}
			failures = 0
			out.explain(ctx, s, now)
			if known == nil || *known != *now {
				if !now.Ready && (known == nil || known.Ready) {
					tie(sink)
				}
				e := source.Now(now)
				if known != nil && now.Ready {
					clock.Wait(ctx, settle)
				}
				known = now
				sink(e)
			}
		}
		pause := every
		if known != nil && !known.Ready {
			pause = soon
		}
		clock.Wait(ctx, pause)
	}
}

// tie publishes the clocks: the wall clock may have been set, or the node suspended.
func tie(sink event.Sink) {
	mono, wall := clock.Anchor()
	sink(event.Event{Time: mono, Body: &event.Clock{Wall: wall}})
}

type outage struct {
	since, looked time.Time // zero: ready; not yet
	lacks         event.Lack
	missing       string
}

func (o *outage) explain(ctx context.Context, s Source, r *event.Readiness) {
	now := time.Now()
	switch {
	case r.Ready:
		*o = outage{}
		return
	case o.since.IsZero():
		o.since = now
	}
	if s.Look != nil && now.Sub(o.looked) >= looks {
		ctx, cancel := context.WithTimeout(ctx, answer)
		defer cancel()
		if lacks, missing := s.Look(ctx); missing != "" {
			o.lacks, o.missing = lacks, text.Clean(missing, 2*text.Bound)
		}
		o.looked = now
	}
	r.Lacks, r.Missing = o.lacks, o.missing
	r.Overdue = s.Overdue > 0 && now.Sub(o.since) >= s.Overdue
}

func ask(ctx context.Context, status func(context.Context) (*cri.StatusResponse, error)) (*event.Readiness, error) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	said, err := status(ctx)
	if grpcstatus.Code(err) == codes.Unimplemented {
		return &event.Readiness{Reason: "the runtime serves no CRI, because its CRI plugin did not start"}, nil
	}
	if err != nil {
		return nil, err
	}
	for _, c := range said.GetStatus().GetConditions() {
		if c.GetType() == cri.NetworkReady {
			r := &event.Readiness{Ready: c.GetStatus()}
			if !r.Ready {
				r.Reason = foreign(c.GetReason() + ": " + c.GetMessage())
			}
			return r, nil
		}
	}
	return nil, fmt.Errorf("its status says nothing of the network")
}

// foreign redacts and bounds the runtime's text, which repeats plugins' errors.
func foreign(s string) string { return text.Clean(redact.Ours().Said(s), text.Bound) }
