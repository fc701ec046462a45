package decode

import (
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/agents"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

func locks(on on) {
	on((*Decoder).held, kernel.InsideClassCLASS_LOCK_HELD)
	on(func(d *Decoder, r record) ([]event.Body, bool) { return one(d.lock(r)), true }, kernel.InsideClassCLASS_FLOCK, kernel.InsideClassCLASS_FCNTL)
	on(func(d *Decoder, r record) ([]event.Body, bool) { return one(d.mutex(r)), true }, kernel.InsideClassCLASS_MUTEX)
}

// held notes who has the lock that a thread begins to wait for.
func (d *Decoder) held(r record) ([]event.Body, bool) {
	d.holders[r.Thread] = d.holder(r.Other.Tgid)
	return nil, true
}

// lock is a lock on a file that was taken, given back, or asked for in vain.
func (d *Decoder) lock(r record) *event.Wait {
	w := &event.Wait{
		Process: r.process, Thread: r.Thread, Start: int64(r.Start),
		Kind: event.WaitLock, Name: d.names[r.Nr], Path: pathOf(r.data),
		Error: errno(r.Ret), Holder: d.holders[r.Thread],
	}
	delete(d.holders, r.Thread)
	if kernel.InsideClass(r.Class) == kernel.InsideClassCLASS_FLOCK {
		w.Released = r.Args[1]&unix.LOCK_UN != 0
	} else {
		w.Released = int16(r.Args[3]) == unix.F_UNLCK
	}
	return w
}

// holder says who has a lock, as far as that can still be asked. Its number is of the
// initial PID namespace; in another one it means somebody else.
func (d *Decoder) holder(number uint32) *event.Actor {
	h := &event.Actor{Process: d.byNumber[number]}
	if int32(number) <= 0 || !d.options.Initial { // it may belong to an open file, not to a process
		return h
	}
	h.PID, h.Name = number, agents.Program(number)
	if s, err := procfs.StatOf(int(number)); err == nil && !s.Zombie() && s.Parent > 1 {
		h.Parent = agents.Program(uint32(s.Parent))
	}
	return h
}
