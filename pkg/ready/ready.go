// Package ready is the source of whether the runtime takes the node's network to be
// ready: what kubelet asks every few seconds, and without which no pod comes to the node.
//
// It asks and never changes anything. Where the runtime cannot be asked (a container
// without its socket) that is said once, and nothing else is missing.
package ready

import (
	"context"
	"fmt"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/runtime"
	"github.com/cniscope/cniscope/pkg/source"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	// every is how often is asked while the network is ready. kubelet asks every 5 s, and
	// each question may have the runtime run a plugin (STATUS, CNI specification 1.1).
	every = 10 * time.Second
	// soon is how often while it is not: so exact is the time at which it is.
	soon = time.Second
	// settle is how long the end of an outage is kept back: what ended it is mostly a file in the CNI folder, which
	// is read when it has been left alone for 200 ms (cniconf).
	settle = 300 * time.Millisecond
	// answer is how long one question may take.
	answer = 5 * time.Second
	// patience is how many failures in a row are a loss.
	patience = 3
	// looks is how often is looked what is missing while the network is not ready.
	looks   = 5 * time.Second
	feature = "network readiness"
)

// Source asks the runtime. Run it once.
type Source struct {
	// Address is the path of the runtime's socket.
	Address string
	// Look finds out what is missing while the network is not ready; nil: nobody does.
	Look func(context.Context) (event.Lack, string)
	// Overdue is how long it may take to be ready until that is said; 0: for ever.
	Overdue time.Duration
}

// Name is "ready".
func (Source) Name() string { return "ready" }

// Stats names the features that may be missing; nothing is counted.
func (Source) Stats() source.Stats { return source.Stats{Features: []string{feature}} }

// Run asks until ctx is done, and returns nil then.
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

// watch asks until ctx is done, and tells sink what has changed.
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
					Reason:  fmt.Sprintf("the runtime does not answer at %s: %s; how long the node's network is not ready is not seen", s.Address, foreign(err.Error())),
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
					wait(ctx, settle)
				}
				known = now
				sink(e)
			}
		}
		pause := every
		if known != nil && !known.Ready {
			pause = soon
		}
		wait(ctx, pause)
	}
}

// tie ties the clocks before an outage: since the last call the wall's clock may have been set, or the node suspended.
func tie(sink event.Sink) {
	mono, wall := clock.Anchor()
	sink(event.Event{Time: mono, Body: &event.Clock{Wall: wall}})
}

// wait waits that long, or until ctx is done.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// outage is what is known of the time in which the network is not ready.
type outage struct {
	since, looked time.Time // zero while it is ready, and while nobody has looked
	lacks         event.Lack
	missing       string
}

// explain adds to an answer what is missing, and whether it takes too long.
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

// ask asks once, and takes the network's condition out of the answer.
func ask(ctx context.Context, status func(context.Context) (*cri.StatusResponse, error)) (*event.Readiness, error) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	said, err := status(ctx)
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

// foreign returns what may leave of a text of the runtime, which repeats the errors of plugins (STATUS).
func foreign(s string) string { return text.Clean(redact.Ours().Said(s), text.Bound) }
