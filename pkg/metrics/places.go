package metrics

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// placesMax is how many connections are open at one time: some 20 KiB of buffers each.
	placesMax = 1024
	// tenure is how long we wait for somebody for whom we have a place, at least, when others
	// want it: a request that is on its way comes in less, also on a busy node. Together they admit some 5,000
	// connections a second, so that even a whole backlog of the kernel's (net.core.somaxconn,
	// 4096) ahead of a kubelet's probe costs it less than a second.
	tenure = 200 * time.Millisecond
)

// places is a listener that nobody can fill up. When all places are taken a newcomer gets the one of
// whoever we wait for longest: somebody idle, or slow to ask, or slow to take the answer, be it byte by
// byte. Whoever waits for us keeps the place, however long that takes on a busy node, but has one answer
// while others wait; so a probe of the kubelet's gets through, however many sockets others hold open.
type places struct {
	*net.TCPListener
	freed  chan struct{} // holds a note when somebody left
	closed chan struct{}
	once   sync.Once
	pace   time.Duration // from one connection to the next, at least
	last   time.Time     // the latest

	mu    sync.Mutex
	taken map[*place]bool
}

// place is a connection that has one. Its fields below are guarded by of.mu.
type place struct {
	*net.TCPConn
	of *places

	since            time.Time // from when on we wait for a whole request, or for an answer to be taken
	reading, writing bool      // we do so now
	working          int       // requests that are being answered
	owed             bool      // an answer is ready and not written yet
	answered         bool      // some of an answer is written: what we read next is another request
	parted           bool      // we have said good-bye
}

func newPlaces(l *net.TCPListener) *places {
	return &places{TCPListener: l, freed: make(chan struct{}, 1), closed: make(chan struct{}), taken: map[*place]bool{}}
}

func (p *places) Accept() (net.Conn, error) {
	if wait := p.pace - time.Since(p.last); wait > 0 {
		select {
		case <-time.After(wait):
		case <-p.closed:
		}
	}
	c, err := p.AcceptTCP()
	if err != nil {
		return nil, err
	}
	p.last = time.Now()
	for {
		victim, wait, ok := p.room()
		if ok {
			if victim != nil {
				_ = victim.Close()
			}
			taken := &place{TCPConn: c, of: p, since: time.Now()}
			p.mu.Lock()
			p.taken[taken] = true
			p.mu.Unlock()
			return taken, nil
		}
		select {
		case <-time.After(wait):
		case <-p.freed:
		case <-p.closed:
			_ = c.Close()
			return nil, net.ErrClosed
		}
	}
}

// room reports whether there is a place, and whose it is; else for how long to wait at most
// before asking again.
func (p *places) room() (victim *place, wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.taken) < placesMax {
		return nil, 0, true
	}
	var since time.Time
	for c := range p.taken {
		if t, waiting := c.waiting(); waiting && (victim == nil || t.Before(since)) && (c.parted || c.writing || !unread(c.TCPConn)) {
			victim, since = c, t
		}
	}
	if victim == nil {
		return nil, tenure, false
	}
	if wait = tenure - time.Since(since); wait > 0 {
		return nil, wait, false
	}
	return victim, 0, true
}

// waiting tells from when on we wait for somebody.
func (c *place) waiting() (since time.Time, ok bool) {
	switch {
	case c.parted:
		return time.Time{}, true
	case c.writing:
		return c.since, true
	case c.working > 0 || c.owed || !c.reading:
		return time.Time{}, false
	}
	return c.since, true
}

// note changes the state of a connection, with the time.
func (c *place) note(change func(now time.Time)) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	change(time.Now())
}

// Read reads what is asked. However many times that takes, we wait for one request.
func (c *place) Read(b []byte) (int, error) {
	c.note(func(now time.Time) {
		c.reading = true
		if c.answered {
			c.since, c.answered = now, false
		}
	})
	defer func() { c.note(func(time.Time) { c.reading = false }) }()
	return c.TCPConn.Read(b)
}

// Write writes an answer, or a part of one.
func (c *place) Write(b []byte) (int, error) {
	c.note(func(now time.Time) {
		c.writing = true
		if c.since.IsZero() {
			c.since = now
		}
	})
	defer func() { c.note(func(time.Time) { c.writing, c.owed, c.answered = false, false, true }) }()
	return c.TCPConn.Write(b)
}

// CloseWrite is what http.Server does before it gives a rude client some time to go.
func (c *place) CloseWrite() error {
	c.note(func(time.Time) { c.parted = true })
	return c.TCPConn.CloseWrite()
}

// Close closes the connection and leaves its place.
func (c *place) Close() error {
	c.note(func(time.Time) { delete(c.of.taken, c) })
	select {
	case c.of.freed <- struct{}{}:
	default: // one note is enough
	}
	return c.TCPConn.Close()
}

// work keeps the place while a request is answered, and until the answer is written.
func (c *place) work() (done func()) {
	c.note(func(time.Time) { c.working++; c.since = time.Time{} })
	return func() { c.note(func(time.Time) { c.working--; c.owed = true }) }
}

// Close ends listening. Connections stay as they are.
func (p *places) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.TCPListener.Close()
}

type placeKey struct{}

// withPlace is http.Server's ConnContext.
func withPlace(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, placeKey{}, c)
}

// brief has h answer, and then ends a connection that would hold its place for nothing: one that
// has yet to send a body, which nobody here wants and http.Server would wait for, and, while
// others may be waiting for a place, each.
func (p *places) brief(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 || p.full() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

func (p *places) full() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.taken) >= placesMax
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
