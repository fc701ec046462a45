package nri

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
	"github.com/containerd/ttrpc"

	"github.com/cniscope/cniscope/pkg/anchor"
)

// What ends a session, besides the runtime's own word.
var (
	errCut     = errors.New("the runtime closed the connection")
	errTimeout = errors.New("the runtime did not answer in time")
)

// session registers over a connection, and returns when that has failed or the
// connection is over. The error is never nil.
func (p *Plugin) session(ctx context.Context, c *conn) error {
	defer c.Close()
	p.anchor(anchor.Peer(c.Conn))
	h := newHandlers(p)
	s, err := stub.New(h, p.stubOptions(c, h)...)
	if err != nil {
		return err
	}
	if err := p.start(ctx, s, c, h); err != nil {
		return err
	}
	p.sessions.Add(1)
	p.connected.Store(true)
	p.queue.say(nil)
	p.options.Log.Info("NRI: registered", "pre-installed", p.preinstalled, "runtime_pid", p.runtimePID.Load())
	defer func() {
		p.connected.Store(false)
		within(p.pace.stop, s.Stop)
	}()

	p.settle(ctx, c, h)
	p.markAttempted()
	select {
	case <-c.gone:
		return errCut
	case <-ctx.Done():
		return ctx.Err()
	}
}

// anchor says who is at the other end: the runtime. Of a pre-installed plugin whose socket
// does not say, that is its parent.
func (p *Plugin) anchor(peer int) {
	if peer == 0 && p.preinstalled {
		peer = os.Getppid()
	}
	p.runtimePID.Store(int64(peer))
	p.options.Anchors.Serves(p.options.Socket, peer)
}

// stubOptions hand the stub a connection that stays ours. WithConnection suits a
// stub for one session only, and that is what it is here; it also keeps the stub
// from taking the socket of the environment again.
func (p *Plugin) stubOptions(c *conn, h *handlers) []stub.Option {
	options := []stub.Option{
		stub.WithConnection(c),
		stub.WithTTRPCOptions(nil, []ttrpc.ServerOpt{ttrpc.WithUnaryServerInterceptor(h.gate)}),
		stub.WithLogger(stubLog{p.options.Log}),
	}
	if os.Getenv(api.PluginIdxEnvVar) == "" { // the stub refuses a second index
		options = append(options, stub.WithPluginName(p.options.Name), stub.WithPluginIdx(p.options.Index))
	}
	return options
}

// start registers. The stub's Start waits for the runtime to call Configure, with
// no way out if that never comes, not even by its context (nri v0.12.5
// pkg/stub/stub.go:483); so it is given up on here when the connection ends or
// the time is over.
func (p *Plugin) start(ctx context.Context, s stub.Stub, c *conn, h *handlers) error {
	started := make(chan error, 1)
	go func() { started <- s.Start(withTTRPCLog(ctx, p.options.Log)) }()
	timeout := time.NewTimer(p.pace.start)
	defer timeout.Stop()
	var why error
	select {
	case err := <-started:
		return err
	case <-c.gone:
		why = errCut
	case <-timeout.C:
		why = errTimeout
	case <-ctx.Done():
		why = ctx.Err()
	}
	c.Close()
	if !p.release(s, c, h, started) {
		// Nothing can be done about it: a few KiB are lost, and counted nowhere else.
		p.options.Log.Warn("NRI: a registration that was given up hangs for ever", "why", why)
	}
	return fmt.Errorf("register: %w", why)
}

// release makes a Start return whose connection is closed. Where it has
// registered, only a call of Configure ends it, and since the runtime will not
// make that call, we do: the handler answers with errAbandoned. The gate sees to
// it that there is only one such call, the runtime's or ours.
func (p *Plugin) release(s stub.Stub, c *conn, h *handlers, started <-chan error) bool {
	deadline := time.NewTimer(p.pace.stop)
	defer deadline.Stop()
	if h.state.CompareAndSwap(waiting, abandoned) {
		select {
		case <-c.spoke: // from here on Start's channels exist
			if own, ok := s.(interface {
				Configure(context.Context, *api.ConfigureRequest) (*api.ConfigureResponse, error)
			}); ok {
				go func() { _, _ = own.Configure(context.Background(), &api.ConfigureRequest{}) }()
			}
		case err := <-started:
			return ended(s, err)
		case <-deadline.C:
			return false
		}
	}
	select {
	case err := <-started:
		return ended(s, err)
	case <-deadline.C:
		return false
	}
}

// ended cleans up after a Start that succeeded when nobody wanted it any more.
func ended(s stub.Stub, err error) bool {
	if err == nil {
		s.Stop()
	}
	return true
}

// settle waits, not for long, until options and sandboxes were received: up to the
// end of the synchronisation the runtime may hold a lock of the whole node for us.
func (p *Plugin) settle(ctx context.Context, c *conn, h *handlers) {
	ctx, cancel := context.WithTimeout(ctx, p.pace.settle)
	defer cancel()
	for _, done := range []<-chan struct{}{h.applied, h.synchronised} {
		select {
		case <-done:
		case <-c.gone:
		case <-ctx.Done():
		}
	}
}

// within calls f and waits for it, up to a limit.
func within(limit time.Duration, f func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(limit):
	}
}
