package record

import (
	"runtime"

	"github.com/cniscope/cniscope/pkg/clock"
)

// Host returns a header with what is to be known of this machine: kernel, boot,
// architecture and the clocks now. What cannot be read stays empty.
func Host() Header {
	h := Header{Kernel: kernel(), BootID: bootID(), Arch: runtime.GOARCH}
	h.Clock.Mono, h.Clock.Wall = clock.Anchor()
	return h
}
