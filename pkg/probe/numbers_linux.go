package probe

import (
	"math"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// listEvery bounds the listing, which costs 1 ms per 1,000 threads.
const listEvery = 50e6 // ns

// numbers translates PIDs between the initial namespace (kernel side) and ours (/proc). Not safe for concurrent use.
type numbers struct {
	// lists the processes; nil in the initial namespace
	list   func() ([]kernel.Key, error)
	now    func() int64
	listed int64
	// ours is by initial PID, here by ours
	ours, here map[uint32]kernel.Key
}

func newNumbers(initial bool, side *kernel.Side) *numbers {
	n := &numbers{now: clock.Monotonic}
	if !initial {
		n.list = side.Numbers
	}
	return n
}

// Key takes our PID. In the initial namespace the start is exact to a tick.
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

// Here translates an initial PID.
func (n *numbers) Here(tgid uint32) (uint32, bool) {
	if n.list == nil {
		return tgid, true
	}
	key, ok := n.find(&n.ours, tgid)
	return key.Pid, ok
}

func (n *numbers) renew() { n.listed = math.MinInt64 / 2 }

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
	if err != nil {
		return kernel.Key{}, false
	}
	for _, key := range keys {
		n.ours[key.Tgid], n.here[key.Pid] = key, key
	}
	key, ok = (*by)[number]
	return key, ok
}
