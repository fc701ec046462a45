//go:build linux

package soak

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cniscope/cniscope/test/soak/agentd/protocol"
)

func (n *node) round(ctx context.Context, p plan) (e entry) {
	e = entry{Plan: p, Began: time.Now().UTC()}
	since, lost := protocol.Now(), n.allLost()
	violate := func(format string, args ...any) { e.Violations = append(e.Violations, fmt.Sprintf(format, args...)) }

	if p.Control {
		if _, err := n.restarted(ctx); err != nil { // restarted below
			violate("%v", err)
		}
	}
	var answered atomic.Int64
	var doing sync.WaitGroup
	happened := make([]happening, len(p.Faults))
	over := make(chan struct{}) // all pods were answered
	for i, f := range p.Faults {
		doing.Go(func() {
			happened[i] = n.suffer(ctx, f, func() bool {
				select {
				case <-over:
					return true
				default:
					return int(answered.Load()) >= f.After
				}
			})
		})
	}
	e.Pods = n.pods(ctx, p, &answered)
	close(over)
	doing.Wait()
	e.Faults = happened
	n.judgePods(&e, violate)
	if how := n.over(); how != "" {
		if !mayEnd(p) {
			violate("cniscope %s, and nothing was done that may end it", how)
		}
		if err := n.start(ctx); err != nil {
			violate("cniscope does not start again: %v", err)
			return e
		}
	}

	undone := time.Now()
	bounded, cancel := context.WithTimeout(ctx, bound)
	err := n.asBefore(bounded, fmt.Sprintf("r%d-after", p.Round))
	cancel()
	e.Recovery = time.Since(undone).Seconds()
	if err != nil {
		violate("%s after the last fault was undone all is not as before: %v", bound, err)
	}
	if err := n.sweep(ctx); err != nil {
		violate("%v", err)
	}
	n.settleAccounts(ctx, &e, since, lost, violate)
	if e.Sample, err = n.sample(ctx); err != nil {
		violate("cniscope cannot be looked at: %v", err)
	}
	return e
}

// bound bounds the recovery after the last fault; exports retry every 30 s.
const bound = 2 * time.Minute

type happening struct {
	Kind string
	// Held is its duration in seconds.
	Held float64
	Err  string `json:",omitempty"`
	// Unsupported means that the machine cannot do it.
	Unsupported bool `json:",omitempty"`
}

func (n *node) suffer(ctx context.Context, p planned, now func() bool) happening {
	h := happening{Kind: p.Kind}
	fail := func(err error) happening {
		h.Err, h.Unsupported = err.Error(), errors.Is(err, errors.ErrUnsupported)
		return h
	}
	if err := pause(ctx, p.Delay, now); err != nil {
		return fail(err)
	}
	began := time.Now()
	undo, err := faultOf(p.Kind).begin(ctx, n)
	if err == nil {
		err = pause(ctx, p.Hold, func() bool { return true })
	}
	if undo != nil {
		if undoing := undo(ctx); err == nil {
			err = undoing
		}
	}
	h.Held = time.Since(began).Seconds()
	if err != nil {
		return fail(err)
	}
	return h
}

// pause waits for a condition, then for a duration.
func pause(ctx context.Context, d time.Duration, now func() bool) error {
	for !now() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (n *node) judgePods(e *entry, violate func(string, ...any)) {
	for _, h := range e.Faults {
		if h.Err != "" && !h.Unsupported {
			violate("%s: %s", h.Kind, h.Err)
		}
	}
	for _, one := range e.Pods {
		switch {
		case one.TimedOut:
			violate("pod %s: no answer within %s", one.Name, asking)
		case one.Err != "" && !mayFail(e.Plan):
			violate("pod %s failed, and nothing was done that fails it: %s", one.Name, one.Err)
		}
	}
}

func mayFail(p plan) bool { return anyFault(p, func(f fault) bool { return f.fails }) }

func mayEnd(p plan) bool { return p.Control || anyFault(p, func(f fault) bool { return f.ends }) }

func anyFault(p plan, is func(fault) bool) bool {
	for _, f := range p.Faults {
		if is(faultOf(f.Kind)) {
			return true
		}
	}
	return false
}
