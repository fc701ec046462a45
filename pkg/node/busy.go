package node

import (
	"sync/atomic"
)

// busy: operations are open. One goroutine sets it, others read.
type busy struct{ open atomic.Bool }

func (b *busy) set(open bool) { b.open.Store(open) }
func (b *busy) is() bool      { return b.open.Load() }
