package metrics

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/webconfig"
)

const (
	// placesMax bounds an address's connections, with about 20 KiB of buffers each.
	placesMax = 1024
	// tenure is a connection's minimum time when others wait; a request on its way arrives earlier, even on a busy
	// node. With placesMax it admits 10,000 connections/s, so a probe behind a full backlog (net.core.somaxconn, 4096)
	// waits 0.4 s.
	tenure = 100 * time.Millisecond
	// readMax bounds a client's bytes: a request and a TLS handshake. crypto/tls buffers up to 256 KiB; placesMax times
	// that exceeds the memory limit. A chain of three certificates has under 24 KiB.
	readMax = 32 << 10
)

var errReadMax = errors.New("the client sends more than 32 KiB")

type state int

const (
	asking  state = iota // no request, unless the kernel holds unread bytes
	working              // client waits for the answer
	leaving              // client reads or disconnects
)

type listener interface {
	net.Listener
	AcceptTCP() (*net.TCPConn, error)
}

// places is a listener that clients cannot exhaust: when full, it closes the oldest connection that does not wait
// for the server. Accept is for one goroutine. netutil.LimitListener would lock out kubelet's probes.
type places struct {
	listener

	mu   sync.Mutex
	open []*place // sorted by since
}

// place is guarded by of.mu.
type place struct {
	*net.TCPConn
	of    *places
	since time.Time
	state state
	read  int // bytes, for the one reader
}

func (p *places) Accept() (net.Conn, error) {
	tcp, err := p.AcceptTCP()
	if err != nil {
		return nil, err
	}
	for !p.room(time.Now()) {
		time.Sleep(time.Millisecond) // lets a handler finish
	}
	c := &place{TCPConn: tcp, of: p, since: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = append(p.open, c)
	return c, nil
}

func (p *places) room(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.open) < placesMax {
		return true
	}
	for i, c := range p.open {
		switch {
		case now.Sub(c.since) < tenure:
			return false // later ones are younger
		case c.state == leaving || c.state == asking && !unread(c.TCPConn):
			p.open = slices.Delete(p.open, i, i+1)
			_ = c.TCPConn.Close()
			return true
		}
	}
	return false
}

// becomes changes the state. An answer starts a new tenure.
func (c *place) becomes(next state) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if i := slices.Index(c.of.open, c); i >= 0 && c.state == working && next == leaving {
		c.since = time.Now()
		c.of.open = append(slices.Delete(c.of.open, i, i+1), c)
	}
	c.state = next
}

func (c *place) Read(b []byte) (int, error) {
	if c.read >= readMax {
		return 0, errReadMax
	}
	n, err := c.TCPConn.Read(b[:min(len(b), readMax-c.read)])
	c.read += n
	return n, err
}

func (c *place) Write(b []byte) (int, error) {
	c.becomes(leaving)
	return c.TCPConn.Write(b)
}

// CloseWrite is called by http.Server before it lingers.
func (c *place) CloseWrite() error {
	c.becomes(leaving)
	return c.TCPConn.CloseWrite()
}

func (c *place) Close() error {
	c.of.mu.Lock()
	if i := slices.Index(c.of.open, c); i >= 0 {
		c.of.open = slices.Delete(c.of.open, i, i+1)
	}
	c.of.mu.Unlock()
	return c.TCPConn.Close()
}

type placeKey struct{}

func placeOf(r *http.Request) *place { return r.Context().Value(placeKey{}).(*place) }

func withPlace(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, placeKey{}, c)
}

// keeping protects a place until h, which bounds its requests, starts to answer.
func keeping(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		placeOf(r).becomes(working)
		if r.ContentLength != 0 { // http.Server must not wait for a body
			_ = http.NewResponseController(w).SetReadDeadline(time.Now())
		}
		h.ServeHTTP(w, r)
	})
}

const (
	// handshake is the minimum interval of TLS connections: at 1 ms (RSA), strangers use half a CPU.
	handshake = 2 * time.Millisecond
	// waitingMax is what one user's connections may wait, 4 s.
	waitingMax = 2 * placesMax
	// breath bounds the CPU for connections that are refused at once. A full backlog (net.core.somaxconn) lasts 1 s.
	breath = 100 * time.Microsecond
)

// turnstile is a listener that returns one connection per handshake, alternately the oldest and a random source's, so
// strangers that connect all the time cannot keep a scraper out.
type turnstile struct {
	*net.TCPListener
	source   func(*net.TCPConn) string
	turns    webconfig.Turns
	admitted chan *net.TCPConn
	failed   chan error
	done     chan struct{}
	once     sync.Once
}

func newTurnstile(l *net.TCPListener, source func(*net.TCPConn) string) *turnstile {
	q := &turnstile{
		TCPListener: l, source: source, turns: webconfig.Turns{Max: waitingMax},
		admitted: make(chan *net.TCPConn), failed: make(chan error), done: make(chan struct{}),
	}
	go q.fill()
	return q
}

func (q *turnstile) fill() {
	for ; ; time.Sleep(breath) {
		c, err := q.TCPListener.AcceptTCP()
		if err == nil {
			go q.wait(c)
			continue
		}
		select {
		case q.failed <- err:
		case <-q.done:
			return
		}
	}
}

func (q *turnstile) wait(c *net.TCPConn) {
	if q.turns.Take(q.done, q.source(c)) {
		select {
		case q.admitted <- c:
			return
		case <-q.done:
		}
	}
	_ = c.Close()
}

// source is a user of this network namespace, or a network.
func (w Where) source(c *net.TCPConn) string {
	if uid, ok := w.User(c); ok {
		return fmt.Sprint("uid ", uid)
	}
	return webconfig.Source(c.RemoteAddr().String())
}

func (q *turnstile) AcceptTCP() (*net.TCPConn, error) {
	select {
	case c := <-q.admitted:
		time.AfterFunc(handshake, q.turns.Pass)
		return c, nil
	case err := <-q.failed:
		return nil, err
	case <-q.done:
		return nil, net.ErrClosed
	}
}

func (q *turnstile) Close() error {
	q.once.Do(func() { close(q.done) })
	return q.TCPListener.Close()
}
