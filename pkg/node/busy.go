package node

import (
	"sync/atomic"
)

// busy tells the probe whether operations are open. One goroutine sets it, another asks.
type busy struct{ open atomic.Int64 }

func (b *busy) set(open int) { b.open.Store(int64(open)) }
func (b *busy) is() bool     { return b.open.Load() > 0 }
