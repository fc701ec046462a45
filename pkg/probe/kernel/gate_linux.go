package kernel

import (
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
)

// Gate attaches what looks into every system call, and detaches it. One goroutine opens and
// closes it; any may ask whether it is open.
type Gate struct {
	programs []*ebpf.Program
	attached attachments
	before   atomic.Int64 // ns it was open, until it was last closed
	since    atomic.Int64 // when it was opened, in monotonic ns; 0 while it is closed
}

// IsOpen reports whether system calls are looked into.
func (g *Gate) IsOpen() bool { return g.since.Load() != 0 }

// Open attaches, if that has not been done, and reports whether it did. It takes some 0.5 ms.
func (g *Gate) Open(now int64) (opened bool, err error) {
	if g.IsOpen() || len(g.programs) == 0 {
		return false, nil
	}
	for _, program := range g.programs {
		if err := g.attached.attach(program); err != nil {
			_ = g.attached.close()
			return false, err
		}
	}
	g.since.Store(now)
	return true, nil
}

// Close detaches, if anything is attached. To attach again soon after takes 13 ms.
func (g *Gate) Close(now int64) error {
	if since := g.since.Swap(0); since != 0 {
		g.before.Add(now - since)
	}
	return g.attached.close()
}

// Attached is how long the gate was open in all.
func (g *Gate) Attached(now int64) time.Duration {
	d := g.before.Load()
	if since := g.since.Load(); since != 0 {
		d += now - since
	}
	return time.Duration(d)
}
