package probe

import (
	"math"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// listEvery bounds what listing processes costs: some 1 ms for each thousand threads. Whoever began
// since the last list is not known for that long, at most.
const listEvery = 50e6 // ns

// numbers translates between the numbers that processes have in the initial PID namespace, by
// which the kernel side goes, and those in ours, by which /proc does. In the initial one they are
// the same. Not safe for concurrent use.
type numbers struct {
	// list asks the kernel for all processes; nil in the initial namespace.
	list   func() ([]kernel.Key, error)
	now    func() int64
	listed int64
	// ours are the processes of the last list by their number in the initial namespace, here by ours.
	ours, here map[uint32]kernel.Key
}

func newNumbers(initial bool, side *kernel.Side) *numbers {
	n := &numbers{now: clock.Monotonic}
	if !initial {
		n.list = side.Numbers
	}
	return n
}

// Key is that of a process by its number here. In the initial namespace it is exact to a tick, as
// /proc has it. False: there is none, or it cannot be known.
func (n *numbers) Key(pid uint32) (kernel.Key, bool) {
	if n.list != nil {
		return n.find(&n.here, pid)
	}
	s, err := procfs.StatOf(int(pid))
	if err != nil || s.Zombie() {
		return kernel.Key{}, false
	}
	return kernel.Key{Tgid: pid, Start: uint64(s.Start), Pid: pid}, true
}

// Here is the number that a process has here, by the one that it has in the initial namespace.
// False: it has none, or that cannot be known.
func (n *numbers) Here(tgid uint32) (uint32, bool) {
	if n.list == nil {
		return tgid, true
	}
	key, ok := n.find(&n.ours, tgid)
	return key.Pid, ok
}

// renew has the next process that is not known looked for in a new list, however young the last one is.
func (n *numbers) renew() { n.listed = math.MinInt64 / 2 }

// find looks into the last list, and into a new one for whom that does not know any more.
func (n *numbers) find(by *map[uint32]kernel.Key, number uint32) (kernel.Key, bool) {
	key, ok := (*by)[number]
	if ok && procfs.Alive(int(key.Pid), int64(key.Start)) {
		return key, true
	}
	now := n.now()
	if n.ours != nil && now-n.listed < listEvery {
		return kernel.Key{}, false
	}
	keys, err := n.list()
	n.listed = now
	n.ours, n.here = map[uint32]kernel.Key{}, map[uint32]kernel.Key{}
	if err != nil { // it is said at start
		return kernel.Key{}, false
	}
	for _, key := range keys {
		n.ours[key.Tgid], n.here[key.Pid] = key, key
	}
	key, ok = (*by)[number]
	return key, ok
}
