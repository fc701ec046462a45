package nri

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/containerd/log"
	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
	"github.com/containerd/ttrpc"
	"github.com/sirupsen/logrus"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/text"
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
	p.attempt()
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

// stubOptions hand the stub a connection that stays ours. WithConnection suits a stub for one session only,
// and that is what it is here; it also keeps the stub from taking the socket of the environment again.
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

// start registers. The stub's Start waits for the runtime to call Configure, with no way out if that never
// comes, not even by its context (nri v0.12.5 pkg/stub/stub.go:483); so it is given up on here when the
// connection ends or the time is over.
func (p *Plugin) start(ctx context.Context, s stub.Stub, c *conn, h *handlers) error {
	started := make(chan error, 1)
	go func() { started <- s.Start(withTTRPCLog(ctx, p.options.Log)) }()
	var why error
	select {
	case err := <-started:
		return err
	case <-c.gone:
		why = errCut
	case <-time.After(p.pace.start):
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

// release makes a Start return whose connection is closed. Where it has registered, only a call of
// Configure ends it, and since the runtime will not make that call, we do: the handler answers with
// errAbandoned. The gate sees to it that there is only one such call, the runtime's or ours.
func (p *Plugin) release(s stub.Stub, c *conn, h *handlers, started <-chan error) bool {
	deadline := time.After(p.pace.stop)
	spoke := c.spoke
	if !h.state.CompareAndSwap(waiting, abandoned) {
		spoke = nil // the runtime has made the call
	}
	for {
		select {
		case <-spoke: // from here on Start's channels exist
			spoke = nil
			if own, ok := s.(interface {
				Configure(context.Context, *api.ConfigureRequest) (*api.ConfigureResponse, error)
			}); ok {
				go func() { _, _ = own.Configure(context.Background(), &api.ConfigureRequest{}) }()
			}
		case err := <-started:
			if err == nil { // nobody wants it any more
				s.Stop()
			}
			return true
		case <-deadline:
			return false
		}
	}
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

func within(limit time.Duration, f func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// conn is a connection that says when it was first used and when it is over. The
// stub cannot be asked for either while it starts, and it may start for ever.
type conn struct {
	net.Conn
	spoke, gone  chan struct{} // closed at the first write, and when nothing can be read any more
	speaks, over func()        // close them, once
}

func watch(c net.Conn) *conn {
	spoke, gone := make(chan struct{}), make(chan struct{})
	return &conn{c, spoke, gone, sync.OnceFunc(func() { close(spoke) }), sync.OnceFunc(func() { close(gone) })}
}

func (c *conn) Write(b []byte) (int, error) {
	c.speaks()
	return c.Conn.Write(b)
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.over()
	}
	return n, err
}

func (c *conn) Close() error {
	c.over()
	return c.Conn.Close()
}

// stubLog keeps the stub's own log for those who debug: what matters to users is said by this package.
type stubLog struct{ log *slog.Logger }

func (l stubLog) Debugf(ctx context.Context, format string, args ...any) { l.say(ctx, format, args) }

func (l stubLog) Infof(ctx context.Context, format string, args ...any) { l.say(ctx, format, args) }

func (l stubLog) Warnf(ctx context.Context, format string, args ...any) { l.say(ctx, format, args) }

func (l stubLog) Errorf(ctx context.Context, format string, args ...any) { l.say(ctx, format, args) }

func (l stubLog) say(ctx context.Context, format string, args []any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "NRI: "+text.Clean(fmt.Sprintf(format, args...), 2*text.Bound))
	}
}

// withTTRPCLog does the same for ttrpc, which logs to the logger of its context
// and otherwise, in another format, to standard error.
func withTTRPCLog(ctx context.Context, to *slog.Logger) context.Context {
	silent := logrus.New()
	silent.SetOutput(io.Discard)
	silent.AddHook(ttrpcHook{stubLog{to}})
	return log.WithLogger(ctx, logrus.NewEntry(silent))
}

type ttrpcHook struct{ log stubLog }

func (ttrpcHook) Levels() []logrus.Level { return logrus.AllLevels }

func (h ttrpcHook) Fire(e *logrus.Entry) error {
	h.log.Errorf(context.Background(), "ttrpc: %s: %v", e.Message, e.Data[logrus.ErrorKey])
	return nil
}
