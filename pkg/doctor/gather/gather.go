// Package gather finds out the facts about a node: it reads and asks, and changes nothing.
package gather

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

// Facts finds out everything at once; what does not answer in time is an error of its own
// fact, and holds nothing else up.
func Facts(asked context.Context, o fact.Options) *fact.Facts {
	f := &fact.Facts{Options: o, Now: time.Now()}
	ctx, cancel := context.WithTimeout(asked, o.Patience)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		askContainerd(ctx, f)
		// Where plugins lie, and which locks host-local takes, is what containerd told. One
		// that does not answer leaves them as much time as if it had: they may say why.
		ctx, cancel := context.WithTimeout(asked, o.Patience)
		defer cancel()
		bins, data := f.CRI.Value.BinDirs, dataDirs(f)
		var behind sync.WaitGroup
		find(ctx, &behind, &f.Processes, func(ctx context.Context) ([]fact.Process, error) { return processes(ctx, bins) })
		find(ctx, &behind, &f.Locks, func(context.Context) ([]fact.Lock, error) { return heldLocks(data) })
		behind.Wait()
	})
	find(ctx, &wg, &f.Kubelet, func(ctx context.Context) (fact.Health, error) { return askKubelet(ctx, o.Kubelet), nil })
	find(ctx, &wg, &f.Scope, func(ctx context.Context) (fact.Scope, error) { return askScope(ctx, o.RunDir) })
	find(ctx, &wg, &f.Sent, func(ctx context.Context) (none struct{}, err error) {
		if o.Endpoint == "" || o.Send == nil {
			return none, nil
		}
		return none, o.Send(ctx)
	})
	find(ctx, &wg, &f.Chains, chains)
	find(ctx, &wg, &f.LB, loadBalancing)
	find(ctx, &wg, &f.Network, ownNetwork)
	find(ctx, &wg, &f.NRI, func(ctx context.Context) (fact.NRI, error) { return nriSocket(ctx, o) })
	find(ctx, &wg, &f.Kernel, kernelFeatures)
	find(ctx, &wg, &f.Clock, clockState)
	wg.Wait()
	for _, p := range f.Processes.Value {
		f.Kubelet.Value.Running = f.Kubelet.Value.Running || p.Name == "kubelet"
	}
	return f
}

// grace is how long is waited for whoever was told that time is up: it says best what it
// was doing.
const grace = 100 * time.Millisecond

// find fills in one fact, beside the others. Who reads files cannot be told that time is up,
// and a file of a process or below its root can keep its reader for ever: that one is left
// behind.
func find[T any](ctx context.Context, wg *sync.WaitGroup, into *fact.Of[T], how func(context.Context) (T, error)) {
	wg.Go(func() {
		found := make(chan fact.Of[T], 1)
		go func() {
			value, err := how(ctx)
			found <- fact.Of[T]{Value: value, Err: err}
		}()
		select {
		case *into = <-found:
			return
		case <-ctx.Done():
		}
		select {
		case *into = <-found:
		case <-time.After(grace):
			into.Err = fmt.Errorf("there was no answer in time: %w", ctx.Err())
		}
	})
}

// askScope asks the running cniscope, if there is one.
func askScope(ctx context.Context, dir string) (s fact.Scope, err error) {
	if dir == "" {
		return s, control.ErrNotRunning
	}
	c := control.Client{Dir: dir}
	if s.Calls, err = c.Calls(ctx); err != nil {
		return s, err
	}
	s.Node, err = c.Node(ctx)
	return s, err
}

// dataDirs are the folders in which host-local has its locks.
func dataDirs(f *fact.Facts) (dirs []string) {
	for _, l := range f.CRI.Value.Loaded {
		dirs = append(dirs, l.DataDirs...)
	}
	return dirs
}
