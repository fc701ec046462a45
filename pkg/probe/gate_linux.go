package probe

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// gate attaches what looks into every system call, and detaches it.
type gate struct {
	programs []*ebpf.Program
	mode     Detail
	linger   time.Duration

	links  []link.Link
	opened int64        // when, in monotonic ns; 0 while it is closed
	used   int64        // when it was last needed
	before atomic.Int64 // ns it was open, until it was last closed
	since  atomic.Int64 // opened, for other goroutines
}

// wanted tells whether a CNI command opens the gate. STATUS comes every few seconds.
func wanted(command string) bool {
	switch command {
	case "ADD", "DEL", "CHECK", "GC":
		return true
	}
	return false
}

func (g *gate) isOpen() bool { return g.opened != 0 }

// open attaches, if that has not been done. It takes some 0.5 ms.
func (g *gate) open(now int64) error {
	g.used = now
	if g.isOpen() || len(g.programs) == 0 {
		return nil
	}
	for _, program := range g.programs {
		l, err := link.AttachTracing(link.TracingOptions{Program: program})
		if err != nil {
			g.close(now)
			return fmt.Errorf("attaching %s: %w", program, err)
		}
		g.links = append(g.links, l)
	}
	g.opened = now
	g.since.Store(now)
	return nil
}

// idle tells whether the gate has been open for nobody for long enough. To attach again
// soon after would take 13 ms.
func (g *gate) idle(now int64) bool {
	return g.isOpen() && g.mode == DetailAuto && now-g.used >= int64(g.linger)
}

func (g *gate) close(now int64) error {
	var errs []error
	for _, l := range g.links {
		errs = append(errs, l.Close())
	}
	g.links = nil
	if g.isOpen() {
		g.before.Add(now - g.opened)
	}
	g.opened = 0
	g.since.Store(0)
	return errors.Join(errs...)
}

// attachedNow tells other goroutines whether it is open.
func (g *gate) attachedNow() bool { return g.since.Load() != 0 }

// attached is how long the gate was open in all. It may be asked at any time.
func (g *gate) attached(now int64) time.Duration {
	d := g.before.Load()
	if since := g.since.Load(); since != 0 {
		d += now - since
	}
	return time.Duration(d)
}
