package record

import (
	"runtime"

	"github.com/cniscope/cniscope/pkg/clock"
)

// Host returns a header with this machine's data.
func Host() Header {
	h := Header{Kernel: kernel(), BootID: bootID(), Arch: runtime.GOARCH}
	h.Clock.Mono, h.Clock.Wall = clock.Anchor()
	return h
}
