//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

func build(ctx context.Context, dir string) (string, error) {
	say("building cniscope")
	return scope.Build(ctx, dir)
}

type node struct {
	rig      *rig.Rig
	sink     *sink
	observer *scope.Scope // from startObserved
	settings settings
	pods     atomic.Int64
}

func startNode(ctx context.Context, s settings) (*node, error) {
	n := &node{settings: s}
	var err error
	if n.sink, err = newSink(); err != nil {
		return nil, err
	}
	n.rig, err = rig.Start(ctx, rig.Options{})
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// onNode measures with a node of its own.
func onNode(f func(context.Context, *node) ([]row, error)) func(context.Context, settings) ([]row, error) {
	return func(ctx context.Context, s settings) (rows []row, err error) {
		n, err := startNode(ctx, s)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, n.close()) }()
		return f(ctx, n)
	}
}

func (n *node) close() error {
	var err error
	if n.observer != nil {
		err = n.observer.Stop()
	}
	n.sink.server.Stop()
	if n.rig != nil {
		err = errors.Join(err, n.rig.Close())
	}
	return err
}

func startObserved(ctx context.Context, s settings) (*node, error) {
	n, err := startNode(ctx, s)
	if err != nil {
		return nil, err
	}
	if n.observer, err = n.observe(ctx, ""); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

func (n *node) observe(ctx context.Context, options string) (*scope.Scope, error) {
	return scope.Start(ctx, n.rig, scope.Options{
		Program: n.settings.program, TOML: fmt.Sprintf("[export.otlp]\nendpoint = %q\n", n.sink.endpoint) + options,
	})
}

func (n *node) pod(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	id, err := n.run(ctx)
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	return took, n.rig.RemovePod(ctx, id)
}

func (n *node) run(ctx context.Context) (id string, err error) {
	i := n.pods.Add(1)
	return n.rig.RunPod(ctx, rig.PodOptions{
		Namespace: "bench", Name: fmt.Sprint("pod-", i), Labels: map[string]string{"app": "bench"},
		HostPorts: []rig.HostPort{{Host: int32(20_000 + i%10_000), Container: 80}},
	})
}

func (n *node) many(ctx context.Context, pods, parallel int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for range pods {
		group.Go(func() error {
			_, err := n.pod(ctx)
			return err
		})
	}
	return group.Wait()
}

type sink struct {
	coltracepb.UnimplementedTraceServiceServer
	server   *grpc.Server
	endpoint string
	spans    atomic.Int64
}

func newSink() (*sink, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &sink{server: grpc.NewServer(), endpoint: "http://" + l.Addr().String()}
	coltracepb.RegisterTraceServiceServer(s.server, s)
	go func() {
		if err := s.server.Serve(l); err != nil {
			fmt.Fprintln(os.Stderr, "bench: the backend:", err)
		}
	}()
	return s, nil
}

func (s *sink) Export(_ context.Context, r *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	for _, rs := range r.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			s.spans.Add(int64(len(ss.Spans)))
		}
	}
	return &coltracepb.ExportTraceServiceResponse{}, nil
}
