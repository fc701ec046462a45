//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

func measureIdle(ctx context.Context, s settings) (rows []row, err error) {
	n, err := startObserved(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	if _, err := n.pod(ctx); err != nil {
		return nil, err
	}
	if err := pause(ctx, 5*time.Second); err != nil {
		return nil, err
	}
	before, err := cpuTime(n.observer.PID())
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := pause(ctx, s.idle); err != nil {
		return nil, err
	}
	after, err := cpuTime(n.observer.PID())
	if err != nil {
		return nil, err
	}
	m, err := memoryOf(n.observer.PID())
	if err != nil {
		return nil, err
	}
	return []row{
		{
			figure: "CPU while idle", value: 100 * float64(after-before) / float64(time.Since(began)), unit: "% of a core", budget: 0.1,
			note: fmt.Sprintf("%s in %s", after-before, time.Since(began).Round(time.Second)),
		},
		{figure: "RSS while idle", value: mib(m.all()), unit: "MiB", budget: rssBudget, note: m.String()},
	}, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func mib(kib int) float64 { return float64(kib) / 1024 }

const rssBudget = 40

func (m memory) all() int { return m.anon + m.file + m.shmem }

func (m memory) String() string {
	return fmt.Sprintf("anonymous %.1f MiB; the rest is the ring (2 MiB) and the program's file", mib(m.anon))
}
