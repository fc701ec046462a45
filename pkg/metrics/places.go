package metrics

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// placesMax is how many connections are open at one time: some 20 KiB of buffers each.
	placesMax = 256
	// tenure is how long a connection is sure of its place: a request that is on its way is
	// read and answered in far less. Together they admit some 5,000 connections a second, so
	// that even a whole backlog of the kernel's (net.core.somaxconn, 4096) ahead of a
	// kubelet's probe costs it less than a second, and a storm of them a part of one CPU.
	tenure = 50 * time.Millisecond
)

// places is a listener that nobody can fill up. When all places are taken a newcomer gets
// the one of whoever had nothing done for the longest time: somebody idle, or slow to ask,
// or slow to take the answer. How somebody behaves decides, not who came first; so a probe
// of the kubelet's gets through however many sockets others hold open.
type places struct {
	*net.TCPListener
	freed  chan struct{} // holds a note when somebody left
	closed chan struct{}
	once   sync.Once

	mu    sync.Mutex
	taken list.List // of *place, the one that waits longest first
}

// place is a connection that has one.
type place struct {
	*net.TCPConn
	of *places

	// Guarded by of.mu.
	at      *list.Element // nil when it was left
	since   time.Time     // from when on nothing was done for it
	working int           // requests that are being answered
}

func newPlaces(l *net.TCPListener) *places {
	return &places{TCPListener: l, freed: make(chan struct{}, 1), closed: make(chan struct{})}
}

// Accept returns the next connection, once there is a place for it.
func (p *places) Accept() (net.Conn, error) {
	c, err := p.AcceptTCP()
	if err != nil {
		return nil, err
	}
	for {
		victim, wait, ok := p.room()
		if ok {
			if victim != nil {
				_ = victim.Close()
			}
			return p.take(c), nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-p.freed:
		case <-p.closed:
			timer.Stop()
			_ = c.Close()
			return nil, net.ErrClosed
		}
		timer.Stop()
	}
}

// room says whether there is a place, and whose it is; else for how long to wait at most
// before asking again.
func (p *places) room() (victim *place, wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken.Len() < placesMax {
		return nil, 0, true
	}
	for e := p.taken.Front(); e != nil; e = e.Next() {
		c := e.Value.(*place)
		if c.working > 0 {
			continue
		}
		if wait = tenure - time.Since(c.since); wait > 0 {
			return nil, wait, false
		}
		return c, 0, true
	}
	return nil, tenure, false
}

func (p *places) take(c *net.TCPConn) *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := &place{TCPConn: c, of: p, since: time.Now()}
	taken.at = p.taken.PushBack(taken)
	return taken
}

// Close ends listening. Connections stay as they are.
func (p *places) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.TCPListener.Close()
}

// Close closes the connection and leaves its place.
func (c *place) Close() error {
	c.of.mu.Lock()
	if c.at != nil {
		c.of.taken.Remove(c.at)
		c.at = nil
	}
	c.of.mu.Unlock()
	select {
	case c.of.freed <- struct{}{}:
	default: // one note is enough
	}
	return c.TCPConn.Close()
}

// work keeps the place while a request is answered, and begins the waiting anew then.
func (c *place) work() (done func()) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.working++
	return func() {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.working--
		c.since = time.Now()
		if c.at != nil {
			c.of.taken.MoveToBack(c.at)
		}
	}
}

type placeKey struct{}

// withPlace is http.Server's ConnContext.
func withPlace(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, placeKey{}, c)
}

// keeping lets a request keep its connection's place while h answers it. h must be bounded in
// number or time by itself, and must not wait for whoever asks to take the answer.
func keeping(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(placeKey{}).(*place); ok {
			defer c.work()()
		}
		h.ServeHTTP(w, r)
	})
}
