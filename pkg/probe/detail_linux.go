package probe

import (
	"time"

	"github.com/cniscope/cniscope/pkg/probe/kernel"
)

// detail decides when the gate is open (Options.Detail).
type detail struct {
	when   Detail
	linger time.Duration
	gate   *kernel.Gate
	used   int64 // when it was last needed, monotonic ns
}

// wants reports whether a CNI command is looked into. STATUS comes every few seconds.
func (d *detail) wants(command string) bool {
	switch command {
	case "ADD", "DEL", "CHECK", "GC":
		return d.when != DetailCommands
	}
	return false
}

// open sees to it that system calls are looked into, and reports whether they were not before.
// Where that fails it is not tried again.
func (d *detail) open(now int64) (opened bool, err error) {
	d.used = now
	if opened, err = d.gate.Open(now); err != nil {
		d.when = DetailCommands
	}
	return opened, err
}

// due is when that may end; 0 if it need not.
func (d *detail) due() int64 {
	if d.when != DetailAuto || !d.gate.IsOpen() {
		return 0
	}
	return d.used + int64(d.linger)
}
