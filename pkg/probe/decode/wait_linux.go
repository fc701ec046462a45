package decode

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/agents"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

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
	// Readers wait for a writer, rarely for a disk.
	case kernel.InsideClassCLASS_WAIT, kernel.InsideClassCLASS_READ, kernel.InsideClassCLASS_READV, kernel.InsideClassCLASS_RECVFROM,
		kernel.InsideClassCLASS_RECVMSG, kernel.InsideClassCLASS_ACCEPT:
		w.Kind = event.WaitPoll
	}
	return w
}

func (d *Decoder) held(r record) ([]event.Body, bool) {
	d.holders[r.Thread] = &holder{Actor: d.holder(r.Other.Tgid), waiter: r.process, looked: int64(r.Start)}
	return nil, true
}

type holder struct {
	*event.Actor
	waiter event.Process
	looked int64 // last sample, or start of the wait
	halted int64 // ns
}

// LookAtHolders samples awaited locks' holders, each once.
func (d *Decoder) LookAtHolders(now int64, halt func(pid int) (event.AgentState, string)) {
	asked := map[uint32]halted{}
	ask := func(pid uint32) (event.AgentState, string) {
		of, is := asked[pid]
		if !is {
			of.state, of.by = halt(int(pid))
			asked[pid] = of
		}
		return of.state, of.by
	}
	for _, h := range d.holders {
		if h.PID == 0 || now <= h.looked {
			continue
		}
		if state, by := ask(h.PID); state != "" {
			if by != "" || state != h.State { // after the thaw the cause is gone
				h.By = by
			}
			h.State = state
			h.halted += now - h.looked
		}
		h.looked = now
	}
}

type halted struct {
	state event.AgentState
	by    string
}

func (h *holder) during(length int64) *event.Actor {
	if h == nil {
		return nil
	}
	if h.halted <= length/2 {
		h.State, h.By = "", ""
	}
	return h.Actor
}

func (d *Decoder) lock(r record) ([]event.Body, bool) {
	w := &event.Wait{
		Process: r.process, Thread: r.Thread, Start: int64(r.Start),
		Kind: event.WaitLock, Name: d.names[r.Nr],
		Error: errno(r.Ret), Holder: d.holders[r.Thread].during(int64(r.H.Time - r.Start)),
	}
	if len(r.data) > 0 {
		w.Path = pathOf(r.data)
	}
	delete(d.holders, r.Thread)
	if kernel.InsideClass(r.Class) == kernel.InsideClassCLASS_FLOCK {
		w.Released = r.Args[1]&unix.LOCK_UN != 0
	} else {
		w.Released = int16(r.Args[3]) == unix.F_UNLCK
	}
	return append(r.room, w), true
}

// holder takes a PID of the initial namespace, which may be gone.
func (d *Decoder) holder(number uint32) *event.Actor {
	h := &event.Actor{Process: d.byNumber[number]}
	if int32(number) <= 0 { // an open file may have the lock, and no process
		return h
	}
	pid, ok := d.options.Here(number)
	if !ok {
		return h
	}
	h.PID, h.Name = pid, agents.Program(pid)
	if s, err := procfs.StatOf(int(pid)); err == nil && !s.Zombie() && s.Parent > 1 {
		h.Parent = agents.Program(uint32(s.Parent))
	}
	return h
}

// mutex is named by the first known caller.
func (d *Decoder) mutex(r record) ([]event.Body, bool) {
	w := &event.Wait{Process: r.process, Thread: r.Thread, Start: int64(r.Start), Kind: event.WaitMutex}
	if r.Other.Tgid != 0 {
		w.Holder = r.other()
	}
	stack := make([]uint64, 0, 32)
	for b := r.data; len(b) >= 8; b = b[8:] {
		stack = append(stack, binary.NativeEndian.Uint64(b))
	}
	w.Name = d.options.Symbols.Lock(int64(r.H.Time), stack)
	if w.Name == "" { // hidden (kptr_restrict)
		w.Name = "kernel"
		if r.Port != 0 {
			w.Name = cmp.Or(locks[r.Protocol], "netlink")
		}
	}
	return append(r.room, w), true
}

var locks = map[uint16]string{unix.NETLINK_ROUTE: "rtnl", unix.NETLINK_NETFILTER: "nft commit"}
