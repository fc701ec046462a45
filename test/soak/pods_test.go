//go:build linux

package soak

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cniscope/cniscope/test/rig"
)

// asking bounds a request: a burst of 135 pods lasts minutes on two cores.
const asking = 10 * time.Minute

type started struct {
	Name string
	ID   string  `json:",omitempty"`
	MS   float64 // duration
	Err  string  `json:",omitempty"`
	// TimedOut means no answer, which is no failure.
	TimedOut bool `json:",omitempty"`
}

func (n *node) pod(ctx context.Context, name string) started {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	began := time.Now()
	id, err := n.rig.RunPod(ctx, rig.PodOptions{Namespace: "soak", Name: name})
	s := started{Name: name, ID: id, MS: float64(time.Since(began).Microseconds()) / 1e3}
	if err != nil {
		s.Err, s.TimedOut = err.Error(), status.Code(errors.Unwrap(err)) == codes.DeadlineExceeded
	}
	n.mu.Lock()
	n.lives[len(n.lives)-1].Pods++
	n.mu.Unlock()
	return s
}

func (n *node) pods(ctx context.Context, p plan, answered *atomic.Int64) []started {
	all := make([]started, len(p.Pods))
	var running sync.WaitGroup
	for i, name := range p.Pods {
		one := func() {
			all[i] = n.pod(ctx, name)
			answered.Add(1)
		}
		if !p.Burst {
			one()
			continue
		}
		running.Go(one)
	}
	running.Wait()
	return all
}

// sweep removes all pods with retries, like a kubelet.
func (n *node) sweep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	return eventually(ctx, func() error {
		pods, err := n.rig.Pods(ctx)
		if err != nil {
			return err
		}
		var running errgroup.Group
		for _, p := range pods {
			running.Go(func() error {
				return n.rig.EndPod(ctx, p.Id)
			})
		}
		if err := running.Wait(); err != nil {
			return fmt.Errorf("remove the pods: %w", err)
		}
		return nil
	})
}
