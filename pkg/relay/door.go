package relay

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/peer"
)

// Refusal is why a connection was closed unread.
type Refusal string

// Reasons of refused connections.
const (
	// Stranger means another client than the runtime.
	Stranger Refusal = "stranger"
	// NoRuntime means an unknown runtime.
	NoRuntime Refusal = "no runtime"
	// Unseen means an unknown client process.
	Unseen Refusal = "unseen"
	Busy   Refusal = "busy" // too many of the runtime's connections
)

var refusals = [...]Refusal{Stranger, NoRuntime, Unseen, Busy}

const (
	maxArrivals = 1024
	// share bounds the CPU time of checks to 1/share, unless the runtime would wait longer than maxPause. Checking
	// maxArrivals lasts about 10 ms.
	share    = 10
	maxPause = 100 * time.Millisecond
)

// door is a listener for the runtime only. It checks in batches before reading, so strangers use no goroutine.
type door struct {
	*net.TCPListener
	runtime  func() []int
	log      *slog.Logger
	refused  func(Refusal)
	arrivals chan *net.TCPConn
	admitted chan *net.TCPConn
	closing  chan struct{}
	close    sync.Once
	looked   chan struct{} // closed when both goroutines have exited
}

func newDoor(l *net.TCPListener, runtime func() []int, refused func(Refusal), log *slog.Logger) *door {
	d := &door{
		TCPListener: l, runtime: runtime, log: log, refused: refused,
		arrivals: make(chan *net.TCPConn, maxArrivals), admitted: make(chan *net.TCPConn, maxConnections),
		closing: make(chan struct{}), looked: make(chan struct{}),
	}
	go d.arrive()
	go d.look()
	return d
}

func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.admitted:
		return c, nil
	case <-d.looked:
		return nil, net.ErrClosed
	}
}

func (d *door) Close() error {
	d.close.Do(func() { close(d.closing) })
	err := d.TCPListener.Close()
	<-d.looked
	for {
		select {
		case c := <-d.admitted:
			_ = c.Close()
		default:
			return err
		}
	}
}

func (d *door) arrive() {
	defer close(d.arrivals)
	for {
		c, err := d.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // no free descriptor, or an aborted connection (accept(2))
			if !d.wait(maxPause) {
				return
			}
		default:
			select {
			case d.arrivals <- c:
			case <-d.closing:
				_ = c.Close()
			}
		}
	}
}

func (d *door) wait(pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-d.closing:
		return false
	}
}

func (d *door) look() {
	defer close(d.looked)
	for first := range d.arrivals {
		all := []*net.TCPConn{first}
		for len(all) < maxArrivals && len(d.arrivals) > 0 {
			all = append(all, <-d.arrivals)
		}
		began := time.Now()
		d.answer(all)
		d.wait(min(maxPause, (share-1)*time.Since(began)))
	}
}

func (d *door) answer(all []*net.TCPConn) {
	pids := d.runtime()
	if len(pids) == 0 {
		for _, c := range all {
			d.refuse(c, NoRuntime, nil)
		}
		return
	}
	for i, err := range peer.Owned(all, pids) {
		switch {
		case errors.Is(err, peer.ErrStranger):
			d.refuse(all[i], Stranger, err)
		case err != nil:
			d.refuse(all[i], Unseen, err)
		default:
			select {
			case d.admitted <- all[i]:
			default:
				d.refuse(all[i], Busy, nil)
			}
		}
	}
}

var remedies = map[Refusal]string{
	Stranger:  "only the container runtime is answered here; if this is one, name it in probe.callers",
	NoRuntime: "the container runtime is unknown: switch NRI on, set runtime.socket, or name it in probe.callers",
	Unseen:    "it cannot be told whose connection it is: cniscope must run in the node's network and PID namespaces",
	Busy:      "the runtime has too many connections open",
}

func (d *door) refuse(c *net.TCPConn, why Refusal, err error) {
	d.refused(why)
	// Without SO_LINGER 0, each connection stays in TIME_WAIT for a minute.
	_ = c.SetLinger(0)
	_ = c.Close()
	if !errors.Is(err, peer.ErrGone) { // pkg/logging limits the rate
		d.log.Warn("the relay closed a connection; see cniscope_relay_connections_refused_total", "from", c.RemoteAddr(),
			"why", string(why), "remedy", remedies[why], "error", err)
	}
}
