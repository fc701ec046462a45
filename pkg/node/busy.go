package node

import (
	"sync/atomic"
)

// busy is the number of open operations. One goroutine sets it, others ask.
type busy struct{ open atomic.Int64 }

func (b *busy) set(open int) { b.open.Store(int64(open)) }
func (b *busy) is() bool     { return b.open.Load() > 0 }
