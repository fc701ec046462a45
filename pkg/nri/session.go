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
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/source"
	"github.com/cniscope/cniscope/pkg/text"
)

var (
	errCut     = errors.New("the runtime closed the connection")
	errTimeout = errors.New("the runtime did not answer in time")
)

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
	runtime := int(p.runtimePID.Load())
	p.queue.offer(source.Now(&event.Registered{PID: uint32(runtime), Since: startOf(runtime)}))
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

func (p *Plugin) anchor(peer int) {
	if peer == 0 && p.preinstalled {
		peer = os.Getppid()
	}
	p.runtimePID.Store(int64(peer))
	p.options.Anchors.Serves(p.options.Socket, peer)
}

// stubOptions give the stub our connection for one session; otherwise it would use the inherited socket.
func (p *Plugin) stubOptions(c *conn, h *handlers) []stub.Option {
	options := []stub.Option{
		stub.WithConnection(c),
		stub.WithTTRPCOptions(nil, []ttrpc.ServerOpt{ttrpc.WithUnaryServerInterceptor(h.gate)}),
		stub.WithLogger(stubLog{p.options.Log}),
	}
	if os.Getenv(api.PluginIdxEnvVar) == "" { // the stub refuses a second index
		options = append(options, stub.WithPluginName(name), stub.WithPluginIdx(index))
	}
	return options
}

// start abandons a Start that waits for Configure too long: the stub ignores its context.
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
		p.options.Log.Warn("NRI: abandoned registration hangs", "reason", why)
	}
	return fmt.Errorf("register: %w", why)
}

// release makes a Start with a closed connection return, by a call of Configure that returns errAbandoned.
func (p *Plugin) release(s stub.Stub, c *conn, h *handlers, started <-chan error) bool {
	deadline := time.After(p.pace.stop)
	spoke := c.spoke
	if !h.state.CompareAndSwap(waiting, abandoned) {
		spoke = nil
	}
	for {
		select {
		case <-spoke: // Start's channels exist from here on
			spoke = nil
			if own, ok := s.(interface {
				Configure(context.Context, *api.ConfigureRequest) (*api.ConfigureResponse, error)
			}); ok {
				go func() { _, _ = own.Configure(context.Background(), &api.ConfigureRequest{}) }()
			}
		case err := <-started:
			if err == nil {
				s.Stop()
			}
			return true
		case <-deadline:
			return false
		}
	}
}

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

// conn reports a connection's first write and its end, which the stub does not.
type conn struct {
	net.Conn
	spoke, gone  chan struct{} // first write; read error or Close
	speaks, over func()
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
