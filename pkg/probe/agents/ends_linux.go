package agents

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	sockets "github.com/cniscope/cniscope/pkg/peer"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// keys knows a process by its number here (Follower.Key).
type keys func(pid uint32) (kernel.Key, bool)

// maxStreams bounds the streams between two processes that are looked at: an API server has some hundred with etcd.
const maxStreams = 128

// searchFor is how long the reader may search /proc for processes that stand still; if that was not enough, it
// rests for searchRest before it goes on where it was. Who holds a socket is found beside the reader (walk).
const searchFor, searchRest = 50 * time.Millisecond, 9 * 50 * time.Millisecond

// search is the time that the reader has for that. Tests that simulate time replace clock and pids.
type search struct {
	clock      func() time.Time
	pids       func() ([]int, error)
	until      time.Time
	now, rests int64
}

// begin allows for searching again, unless it rests.
func (s *search) begin(now int64) {
	s.now, s.until = now, s.clock()
	if now >= s.rests {
		s.until = s.until.Add(searchFor)
	}
}

// over reports whether there is no time left, and has it rest then.
func (s *search) over() bool {
	if s.clock().Before(s.until) {
		return false
	}
	if s.now >= s.rests {
		s.rests = s.now + int64(searchRest)
	}
	return true
}

// holds reports whether a process has a socket open, as far as there is time to look.
func (s *search) holds(pid int, inode uint64) (is bool) {
	looked := 0
	_ = procfs.Descriptors(pid, func(_ int, target string) bool {
		is = socketIn(target) == inode
		looked++
		return !is && (looked%256 != 0 || !s.over())
	})
	return is
}

// inodeOfOther is that of the other end of a stream; 0 if that is elsewhere.
func inodeOfOther(s *kernel.InsideStream) (inode uint64) {
	if s.Family == unix.AF_UNIX {
		return s.OtherIno
	}
	if net, err := procfs.OwnNamespace("net"); err != nil || net != s.Netns {
		return 0
	}
	inode, _ = sockets.TCP(addressOf(s.OtherAddress, s.OtherPort), addressOf(s.OwnAddress, s.OwnPort))
	return inode
}

// find goes on to look for who has the other end of a stream. Whom the socket names, who called listen or connect,
// is believed if it has that end. Else the walk looks through the descriptors of the node, likely processes first.
func (a *Agents) find(now int64, e *end, s *kernel.InsideStream) {
	if told := int(s.Other.Pid); !e.searching && told > 1 && s.Other.Start != 0 && a.search.holds(told, e.inode) {
		e.actor = event.Actor{Process: kernel.ProcessOf(s.Other), PID: s.Other.Pid, Name: Program(s.Other.Pid)}
		return
	}
	pid, over := a.walk.holder(now, e.inode, a.likely())
	if e.searching = !over; over && pid == 0 {
		e.again = now + int64(searchEvery)
	}
	e.actor = actorOf(pid, a.kernel.Key)
}

// likely are the processes that serve plugins, or agents.
func (a *Agents) likely() (pids []int) {
	for _, known := range a.known {
		pids = append(pids, int(known.key.Pid))
	}
	for _, p := range a.peers {
		pids = append(pids, int(p.key.Pid))
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// actorOf is a process as /proc has it; nobody if it is gone.
func actorOf(pid int, keyOf keys) event.Actor {
	key, ok := keyOf(uint32(pid))
	if !ok {
		return event.Actor{}
	}
	return event.Actor{Process: kernel.ProcessOf(key), PID: uint32(pid), Name: Program(uint32(pid))}
}

// addressOf is an address as the kernel side tells it: of IPv4 as mapped into IPv6, in the network's order.
func addressOf(address [4]uint32, port uint16) netip.AddrPort {
	var b [16]byte
	for i, word := range address {
		binary.NativeEndian.PutUint32(b[4*i:], word)
	}
	return netip.AddrPortFrom(netip.AddrFrom16(b).Unmap(), port)
}

// suspect is a process that stands still and has a stream with one that is waited for.
type suspect struct {
	actor   event.Actor
	inodes  []uint64 // of the ends of who is waited for, at most maxStreams
	network string
}

// suspectsOf finds those who stand still (stopped, frozen or uninterruptible) and have a stream with the process pid,
// among those that may serve: what a pod does with processes of its own says nothing. It begins after the process
// from, and returns the last one that it looked at, or 0 if it looked at all. Nearly always nobody stands still, and it
// takes as long as reading the state of each process.
func suspectsOf(pid uint32, from int, within *search, mayServe func(uint32) bool, keyOf keys) (found []suspect, to int) {
	var still []int
	pids, _ := within.pids()
	slices.Sort(pids)
	for _, p := range pids {
		if p <= max(from, 1) || uint32(p) == pid {
			continue
		}
		if within.over() {
			to = max(from, 1)
			break
		}
		if from = p; standsStill(p) && mayServe(uint32(p)) {
			still = append(still, p)
		}
	}
	if len(still) == 0 {
		return nil, to
	}
	once := search{clock: within.clock} // who stands still is rare, and worth the time
	once.begin(0)
	streams, _ := sockets.Streams()
	others := map[uint64]bool{}
	_ = procfs.Descriptors(int(pid), func(_ int, target string) bool {
		if other := streams[socketIn(target)]; other.Inode != 0 {
			others[other.Inode] = true
		}
		return len(others)%256 != 0 || !once.over()
	})
	for _, p := range still {
		s, looked := suspect{}, 0
		_ = procfs.Descriptors(p, func(_ int, target string) bool {
			if inode := socketIn(target); others[inode] {
				s.inodes, s.network = append(s.inodes, streams[inode].Inode), streams[inode].Network
			}
			looked++
			return len(s.inodes) < maxStreams && (looked%256 != 0 || !once.over())
		})
		if s.actor = actorOf(p, keyOf); len(s.inodes) > 0 && s.actor.PID != 0 {
			found = append(found, s)
		}
	}
	return found, to
}

func standsStill(pid int) bool {
	threads, _ := procfs.Threads(pid, 1)
	switch state, _ := stateOf(threads); state {
	case event.AgentStopped, event.AgentFrozen, event.AgentUninterruptible:
		return true
	}
	return false
}

// socketIn is the inode in what a descriptor's link leads to, "socket:[1234]"; 0 if it is something else.
func socketIn(target string) uint64 {
	number, _ := strings.CutPrefix(target, "socket:[")
	inode, _ := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64)
	return inode
}
