// Package disktest fails the operations on files, for tests: each call in turn (Sweep), or all power at once
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

// Fault is what happens to one call.
type Fault int

// The faults. Killed is what a killed process does to its files: from that call on nothing happens any more, and
// every call fails.
const (
	None    Fault = iota
	EIO           // EIO: nothing happens, the call fails; a file is closed all the same.
	ENOSPC        // ENOSPC: so, but only of what needs room.
	Short         // Short: half of what is written arrives, then there is no room.
	Forever       // Forever: EIO, of this call and all that follow.
	Killed
	Unreadable // Unreadable: EIO, of this read and all that follow.
)

func (f Fault) String() string {
	return [...]string{"no fault", "EIO", "ENOSPC", "a short write", "EIO from then on", "killed", "EIO of all reads from then on"}[f]
}

// needsRoom are the calls that a full disk fails.
var needsRoom = map[string]bool{"create": true, "write": true, "mkdir": true, "link": true, "symlink": true, "rename": true, "attribute": true, "sync": true}

// changes are the calls that change something: a process that is killed at another one leaves the same.
var changes = map[string]bool{
	"create": true, "write": true, "mkdir": true, "link": true, "symlink": true, "rename": true,
	"attribute": true, "sync": true, "remove": true, "removeall": true, "chmod": true, "chown": true, "truncate": true,
}

// touches reports whether a call can meet a fault.
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

// Disk is the system's disk, one call of which fails. Nothing is ever synced really: that would only take time.
type Disk struct {
	*faults
	real disk.FS
	dir  string // what names are below, of a Folder
}

// faults is what a disk and the folders in it have in common.
type faults struct {
	mu      sync.Mutex
	calls   []string // "open /x"
	ops     []string // "open"
	at      int      // the call that fails, from 0
	fault   Fault
	journal journal
}

// Sound is a disk of which no call fails.
func Sound() *Disk {
	d, _ := New("", 0, None) // without a folder it cannot fail
	return d
}

// New makes a disk whose at-th call, from 0, meets a fault. PowerCut knows what lies below the folder.
func New(folder string, at int, fault Fault) (*Disk, error) {
	d := &Disk{faults: &faults{at: at, fault: fault}, real: disk.System{}}
	return d, d.journal.begin(folder)
}

// Calls are the calls so far, in their order.
func (d *Disk) Calls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// Failed reports whether the fault was met.
func (d *Disk) Failed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fault != None && len(d.calls) > d.at
}

// call counts a call, and returns what it meets.
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

// fails counts a call, and returns the error that it meets.
func (d *Disk) fails(op, name string) error { return d.call(op, name).err(op, name) }

// does counts a call, does it unless it fails, and notes what it has changed.
func (d *Disk) does(c change, do func() error) error {
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

func (d *Disk) path(name string) string {
	if d.dir == "" {
		return name
	}
	return filepath.Join(d.dir, name)
}
