package agents

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	sockets "github.com/cniscope/cniscope/pkg/peer"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

type keys func(pid uint32) (kernel.Key, bool)

// maxStreams bounds a process's examined streams: an API server has hundreds with etcd.
const maxStreams = 128

// searchFor bounds the reader's search in /proc for halted processes, which continues after searchRest.
const searchFor, searchRest = 50 * time.Millisecond, 9 * 50 * time.Millisecond

type search struct {
	clock      func() time.Time
	pids       func() ([]int, error)
	until      time.Time
	now, rests int64
}

func (s *search) begin(now int64) {
	s.now, s.until = now, s.clock()
	if now >= s.rests {
		s.until = s.until.Add(searchFor)
	}
}

func (s *search) over() bool {
	if s.clock().Before(s.until) {
		return false
	}
	if s.now >= s.rests {
		s.rests = s.now + int64(searchRest)
	}
	return true
}

func (s *search) holds(pid int, inode uint64) (is bool) {
	_ = procfs.Descriptors(pid, func(_ int, target string) bool {
		is = procfs.SocketIn(target) == inode
		return !is && !s.over()
	})
	return is
}

// inodeOfOther returns 0 if the other end is not on this node.
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

func actorOf(pid int, keyOf keys) event.Actor {
	key, ok := keyOf(uint32(pid))
	if !ok {
		return event.Actor{}
	}
	return event.Actor{Process: kernel.ProcessOf(key), PID: uint32(pid), Name: Program(uint32(pid))}
}

func addressOf(address [4]uint32, port uint16) netip.AddrPort {
	var b [16]byte
	for i, word := range address {
		binary.NativeEndian.PutUint32(b[4*i:], word)
	}
	return netip.AddrPortFrom(netip.AddrFrom16(b).Unmap(), port)
}

// suspect is halted and shares streams with an awaited process.
type suspect struct {
	actor   event.Actor
	inodes  []uint64 // of the awaited process's ends
	network string
}

// suspectsOf finds halted processes that share a stream with pid and may serve it. It continues after PID from, and
// returns the last examined PID; 0 after all.
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
	once := search{clock: within.clock} // rare, so worth the time
	once.begin(0)
	streams, _ := sockets.Streams()
	others := map[uint64]bool{}
	_ = procfs.Descriptors(int(pid), func(_ int, target string) bool {
		if other := streams[procfs.SocketIn(target)]; other.Inode != 0 {
			others[other.Inode] = true
		}
		return !once.over()
	})
	for _, p := range still {
		s := suspect{}
		_ = procfs.Descriptors(p, func(_ int, target string) bool {
			if inode := procfs.SocketIn(target); others[inode] {
				s.inodes, s.network = append(s.inodes, streams[inode].Inode), streams[inode].Network
			}
			return len(s.inodes) < maxStreams && !once.over()
		})
		if s.actor = actorOf(p, keyOf); len(s.inodes) > 0 && s.actor.PID != 0 {
			found = append(found, s)
		}
	}
	return found, to
}

func standsStill(pid int) bool {
	switch state, _ := stateOf([]procfs.Thread{procfs.FirstThread(pid)}); state {
	case event.AgentStopped, event.AgentFrozen, event.AgentUninterruptible:
		return true
	}
	return false
}
