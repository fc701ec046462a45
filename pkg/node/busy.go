package node

import (
	"sync/atomic"
)

// busy counts open operations. One goroutine sets it, others read.
type busy struct{ open atomic.Int64 }

func (b *busy) set(open int) { b.open.Store(int64(open)) }
func (b *busy) is() bool     { return b.open.Load() > 0 }
