package kernel

import (
	"encoding/binary"
	"os"
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// The library unmaps at a garbage collection.
type counters struct {
	mu     sync.Mutex
	mapped []byte
	last   [LifeCounterCOUNTERS]uint64
}

func (c *counters) open(m *ebpf.Map) (err error) {
	c.mapped, err = unix.Mmap(m.FD(), 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
	return err
}

func (c *counters) read() [LifeCounterCOUNTERS]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mapped != nil {
		for i := range c.last {
			c.last[i] = binary.NativeEndian.Uint64(c.mapped[8*i:])
		}
	}
	return c.last
}

func (c *counters) close() error {
	c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mapped == nil {
		return nil
	}
	mapped := c.mapped
	c.mapped = nil
	return unix.Munmap(mapped)
}
