package decode

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
)

// wait is a system call that lasted.
func (d *Decoder) wait(r record) *event.Wait {
	w := &event.Wait{Process: r.process, Thread: r.Thread, Start: int64(r.Start), Kind: event.WaitCall, Name: d.names[r.Nr]}
	if w.Name == "" {
		w.Name = fmt.Sprintf("system call %d", r.Nr)
	}
	switch kernel.InsideClass(r.Class) {
	case kernel.InsideClassCLASS_SLEEP:
		w.Kind = event.WaitSleep
	case kernel.InsideClassCLASS_FUTEX:
		w.Kind = event.WaitPoll
		if r.Ret == -int64(unix.ETIMEDOUT) {
			w.Kind = event.WaitSleep
		}
	case kernel.InsideClassCLASS_POLL:
		w.Kind = event.WaitPoll
		if r.Ret == 0 {
			w.Kind = event.WaitSleep
		}
	// Whoever reads waits for somebody to write; of files on a disk that is not so, but
	// those are read in no time.
	case kernel.InsideClassCLASS_WAIT, kernel.InsideClassCLASS_READ, kernel.InsideClassCLASS_READV, kernel.InsideClassCLASS_RECVFROM,
		kernel.InsideClassCLASS_RECVMSG, kernel.InsideClassCLASS_ACCEPT:
		w.Kind = event.WaitPoll
	}
	return w
}
