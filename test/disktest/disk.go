// Package disktest injects faults into file operations: at each call in turn (Sweep), or a power failure
// (Disk.PowerCut).
package disktest

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/cniscope/cniscope/pkg/disk"
)

// Fault is what a call suffers.
type Fault int

// Faults of a call. Killed, as of a process, makes it and all later calls fail without effect.
const (
	None    Fault = iota
	EIO           // EIO fails without effect; a close still closes.
	ENOSPC        // ENOSPC is EIO for calls that need space.
	Short         // Short writes half, then fails for space.
	Forever       // Forever is EIO from this call on.
	Killed
	Unreadable // Unreadable is EIO from this read on.
)

func (f Fault) String() string {
	return [...]string{
		"no fault", "EIO", "ENOSPC", "a short write", "EIO from then on", "killed",
		"EIO of all reads from then on",
	}[f]
}

var needsRoom = map[string]bool{
	"create": true, "write": true, "mkdir": true, "link": true, "symlink": true,
	"rename": true, "attribute": true, "sync": true,
}

// changes lists calls with an effect; a kill before others leaves the same state.
var changes = map[string]bool{
	"create": true, "write": true, "mkdir": true, "link": true, "symlink": true, "rename": true,
	"attribute": true, "sync": true, "remove": true, "removeall": true, "chmod": true, "chown": true, "truncate": true,
}

func (f Fault) touches(op string) bool {
	switch f {
	case ENOSPC:
		return needsRoom[op]
	case Short:
		return op == "write"
	case Forever, Killed:
		return changes[op]
	case Unreadable:
		return op == "read"
	}
	return true
}

// Disk is the system's with one failing call, and without syncs, which cost time.
type Disk struct{ fsys }

type fsys struct {
	*faults
	real disk.FS
	dir  string
}

type faults struct {
	mu      sync.Mutex
	calls   []string
	ops     []string
	at      int // of the failing call
	fault   Fault
	journal journal
}

// Sound returns a Disk without faults.
func Sound() *Disk {
	d, _ := New("", 0, None) // cannot fail without a directory
	return d
}

// New returns a Disk whose call at, from 0, meets a fault. PowerCut covers folder.
func New(folder string, at int, fault Fault) (*Disk, error) {
	d := &Disk{fsys{faults: &faults{at: at, fault: fault}, real: disk.System()}}
	return d, d.journal.begin(folder)
}

// Calls returns the calls in order.
func (d *Disk) Calls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// Failed reports whether the fault occurred.
func (d *Disk) Failed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fault != None && len(d.calls) > d.at
}

func (d *faults) call(op, name string) Fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.calls)
	d.calls = append(d.calls, fmt.Sprint(op, " ", name))
	d.ops = append(d.ops, op)
	lasts := d.fault == Forever || d.fault == Killed || d.fault == Unreadable && op == "read"
	if n == d.at || n > d.at && lasts {
		return d.fault
	}
	return None
}

func (f Fault) err(op, name string) error {
	switch f {
	case None:
		return nil
	case ENOSPC, Short:
		return &fs.PathError{Op: op, Path: name, Err: syscall.ENOSPC}
	}
	return &fs.PathError{Op: op, Path: name, Err: syscall.EIO}
}

func (d *fsys) fails(op, name string) error { return d.call(op, name).err(op, name) }

func (d *fsys) does(c change, do func() error) error {
	c.name = d.path(c.name)
	if err := d.fails(c.op, c.name); err != nil {
		return err
	}
	err := do()
	if err == nil {
		d.mu.Lock()
		d.journal.note(c)
		d.mu.Unlock()
	}
	return err
}

func (d *fsys) path(name string) string {
	if d.dir == "" {
		return name
	}
	return filepath.Join(d.dir, name)
}
