package metrics

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/webconfig"
)

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
