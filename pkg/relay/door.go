package relay

import (
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cniscope/cniscope/pkg/peer"
)

// Refusal is why a connection was closed before anything was read from it.
type Refusal string

// The refusals.
const (
	// Stranger: its other end is not the runtime's.
	Stranger Refusal = "stranger"
	// NoRuntime: it is not known who the runtime is.
	NoRuntime Refusal = "no runtime"
	// Unseen: its other end cannot be found on this node, or not be asked for.
	Unseen Refusal = "unseen"
	Busy   Refusal = "busy" // Busy: the runtime has too many already.
)

// refusals are all of them, in the order of their counters.
var refusals = [...]Refusal{Stranger, NoRuntime, Unseen, Busy}

const (
	// maxArrivals is how many connections are looked at together; those that follow wait in
	// the kernel (net.core.somaxconn, 4096).
	maxArrivals = 1024
	// share is how much of one CPU looking at strangers may cost: a tenth, as far as maxPause lets it.
	share = 10
	// maxPause is how long the runtime waits at most because of that. Looking at maxArrivals takes some 10
	// ms; where the runtime has thousands of descriptors it takes longer, and costs more than the share.
	maxPause = 100 * time.Millisecond
)

// door is a listener that lets in the runtime only. Who arrives is looked at before a byte is
// read, many at once, so that strangers hold nothing: no place, no goroutine, no memory.
type door struct {
	*net.TCPListener
	runtime  func() []int
	log      *slog.Logger
	refused  *[len(refusals)]atomic.Uint64
	arrivals chan *net.TCPConn
	admitted chan *net.TCPConn
	closing  chan struct{}
	close    sync.Once
	looked   chan struct{} // closed when both goroutines are done
}

func newDoor(l *net.TCPListener, runtime func() []int, refused *[len(refusals)]atomic.Uint64, log *slog.Logger) *door {
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

// Close ends listening, and closes the connections that nobody has accepted yet.
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
		case err != nil: // no descriptor is left, or it was aborted meanwhile (accept(2))
			if !d.wait(maxPause) {
				return
			}
			continue
		}
		select {
		case d.arrivals <- c:
		case <-d.closing:
			_ = c.Close()
		}
	}
}

// wait returns false if the door is closing.
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

// answer lets in who is the runtime, and sends the others away.
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
	NoRuntime: "it is not known who the container runtime is: switch NRI on, set runtime.socket, or name it in probe.callers",
	Unseen:    "it cannot be told whose connection it is: cniscope must run in the node's network and PID namespaces",
	Busy:      "the runtime has too many connections open",
}

func (d *door) refuse(c *net.TCPConn, why Refusal, err error) {
	d.refused[slices.Index(refusals[:], why)].Add(1)
	// Without lingering: the kernel would remember the end of each for a minute (TIME_WAIT).
	_ = c.SetLinger(0)
	_ = c.Close()
	if !errors.Is(err, peer.ErrGone) { // as often as the log's own limit lets it (pkg/logging)
		d.log.Warn("the relay closed a connection; see cniscope_relay_connections_refused_total", "from", c.RemoteAddr(), "why", string(why), "remedy", remedies[why], "error", err)
	}
}
