package metrics

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// placesMax bounds the open connections of one address: each has buffers of some 20 KiB.
	placesMax = 1024
	// tenure is how long a connection keeps its place when others want it. A request that is on its way
	// arrives earlier, also on a busy node. With placesMax it admits 10,000 connections a second, so a
	// kubelet's probe behind a full backlog of the kernel (net.core.somaxconn, 4096) waits 0.4 s.
	tenure = 100 * time.Millisecond
)

// state says which side of a connection waits.
type state int

const (
	asking  state = iota // we wait for a request, unless the kernel has bytes that we did not read yet
	working              // the client waits for our answer
	leaving              // the client takes the answer, or its connection ends
)

// places is a listener that no client can fill up. When all places are taken, a newcomer gets the place of the
// oldest connection that does not wait for us, and that is closed. Accept is for one goroutine.
//
// netutil.LimitListener does not do here: who fills it up keeps a kubelet's probe out.
type places struct {
	*net.TCPListener
	pace time.Duration // between two connections, at least
	last time.Time     // when the latest one was accepted

	mu   sync.Mutex
	open []*place // by since
}

// place is a connection that has one. of.mu guards its fields.
type place struct {
	*net.TCPConn
	of    *places
	since time.Time
	state state
}

func (p *places) Accept() (net.Conn, error) {
	time.Sleep(p.pace - time.Since(p.last))
	tcp, err := p.AcceptTCP()
	if err != nil {
		return nil, err
	}
	p.last = time.Now()
	for !p.room(time.Now()) {
		time.Sleep(time.Millisecond) // whoever gets a turn by that may answer somebody
	}
	c := &place{TCPConn: tcp, of: p, since: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = append(p.open, c)
	return c, nil
}

// room reports whether there is a place for one more, and closes a connection for that if need be.
func (p *places) room(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.open) < placesMax {
		return true
	}
	for i, c := range p.open {
		switch {
		case now.Sub(c.since) < tenure:
			return false // so are all behind it
		case c.state == leaving || c.state == asking && !unread(c.TCPConn):
			p.open = slices.Delete(p.open, i, i+1)
			_ = c.TCPConn.Close()
			return true
		}
	}
	return false
}

// becomes changes the state. An answer gets a tenure of its own, however long we took for it.
func (c *place) becomes(next state) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if i := slices.Index(c.of.open, c); i >= 0 && c.state == working && next == leaving {
		c.since = time.Now()
		c.of.open = append(slices.Delete(c.of.open, i, i+1), c)
	}
	c.state = next
}

// Write begins or goes on with an answer, or with a handshake.
func (c *place) Write(b []byte) (int, error) {
	c.becomes(leaving)
	return c.TCPConn.Write(b)
}

// CloseWrite is what http.Server does before it gives a rude client some time to go.
func (c *place) CloseWrite() error {
	c.becomes(leaving)
	return c.TCPConn.CloseWrite()
}

// Close closes the connection and leaves its place.
func (c *place) Close() error {
	c.of.mu.Lock()
	if i := slices.Index(c.of.open, c); i >= 0 {
		c.of.open = slices.Delete(c.of.open, i, i+1)
	}
	c.of.mu.Unlock()
	return c.TCPConn.Close()
}

type placeKey struct{}

// withPlace is http.Server's ConnContext.
func withPlace(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, placeKey{}, c)
}

// keeping lets a request keep its place until h begins to answer. h bounds by itself how many requests it keeps
// waiting, and for how long.
func keeping(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Context().Value(placeKey{}).(*place).becomes(working)
		if r.ContentLength != 0 { // no request here has a body: http.Server is not to wait for it
			_ = http.NewResponseController(w).SetReadDeadline(time.Now())
		}
		h.ServeHTTP(w, r)
	})
}
