package nri

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/ttrpc"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/text"
)

// handlers are a session's NRI handlers. All runtimes since NRI 0.8.0 have these events.
type handlers struct {
	plugin       *Plugin
	state        atomic.Int32
	applied      chan struct{}
	synchronised chan struct{} // closed when the existing sandboxes were received
	apply, sync  func()        // close applied and synchronised, once
}

const (
	waiting int32 = iota
	configured
	abandoned
)

var errAbandoned = errors.New("the registration was given up")

func newHandlers(p *Plugin) *handlers {
	h := &handlers{plugin: p, applied: make(chan struct{}), synchronised: make(chan struct{})}
	h.apply, h.sync = sync.OnceFunc(func() { close(h.applied) }), sync.OnceFunc(func() { close(h.synchronised) })
	return h
}

func (h *handlers) gate(
	ctx context.Context, body ttrpc.Unmarshaler, info *ttrpc.UnaryServerInfo, method ttrpc.Method,
) (any, error) {
	if strings.HasSuffix(info.FullMethod, "/Configure") {
		h.state.CompareAndSwap(waiting, configured)
		if h.state.Load() == abandoned {
			return nil, errAbandoned
		}
	}
	return method(ctx, body)
}

// Configure applies the options in the background: the runtime waits.
func (h *handlers) Configure(_ context.Context, config, runtime, version string) (api.EventMask, error) {
	if h.state.Load() == abandoned {
		return 0, errAbandoned
	}
	go func() {
		defer h.apply()
		h.plugin.apply(config)
		h.plugin.announce(clean(runtime), clean(version))
	}()
	return 0, nil // all events with a handler
}

func (p *Plugin) apply(config string) {
	defer p.survive("Options.Configure")
	if config == "" || p.options.Configure == nil {
		return
	}
	if err := p.options.Configure(config); err != nil {
		p.options.Log.Error("NRI: invalid options from the runtime, keeping the old ones", "error", err)
	}
}

func (p *Plugin) announce(runtime, version string) {
	defer p.survive("Options.Connected")
	if p.options.Connected != nil {
		p.options.Connected(runtime, version)
	}
}

func (h *handlers) Synchronize(
	ctx context.Context, pods []*api.PodSandbox, _ []*api.Container,
) ([]*api.ContainerUpdate, error) {
	defer h.sync()
	h.plugin.receive(ctx, event.SandboxPresent, event.TraceContext{}, pods...)
	return nil, nil
}

// RunPodSandbox comes after ADD and the sandbox's start.
func (h *handlers) RunPodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	return h.plugin.handle(ctx, event.SandboxRunning, pod)
}

// StopPodSandbox comes before CNI DEL.
func (h *handlers) StopPodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	return h.plugin.handle(ctx, event.SandboxStopped, pod)
}

func (h *handlers) RemovePodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	return h.plugin.handle(ctx, event.SandboxRemoved, pod)
}

// handle measures how long the pod waits. It returns nil, because an error would fail the pod.
func (p *Plugin) handle(ctx context.Context, phase event.Phase, pod *api.PodSandbox) error {
	began := time.Now()
	p.receive(ctx, phase, traceOf(ctx), pod)
	p.times.add(time.Since(began))
	return nil
}

func (p *Plugin) receive(ctx context.Context, phase event.Phase, trace event.TraceContext, pods ...*api.PodSandbox) {
	defer p.survive("a handler")
	defer p.queue.pokeAfter(ctx)
	received := clock.Monotonic()
	for _, pod := range pods {
		p.received.Add(1)
		p.queue.offer(event.Event{Time: received, Body: sandboxOf(phase, pod, trace)})
	}
}

func said(err error) string { return text.Clean(redact.Ours().Said(err.Error()), 2*text.Bound) }
