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

// searchFor is how long the reader may search /proc at once. A tenant can have as many processes, and as many
// descriptors, as it likes: what it delays is that somebody is named, and not the reader.
const searchFor = 50 * time.Millisecond

// holder finds who has a socket open: the first of these processes, but never the first of all, which listens for
// others. 0 if none does. Where there was no time to look at all of them, to is the last that was looked at; else 0.
func holder(pids []int, wanted func(inode uint64) bool) (pid int, inode uint64, to int) {
	until := time.Now().Add(searchFor)
	for _, p := range pids {
		looked := 0
		_ = procfs.Descriptors(p, func(_ int, target string) bool {
			if found := socketIn(target); p > 1 && found != 0 && wanted(found) {
				pid, inode = p, found
			}
			looked++
			return pid == 0 && (looked%256 != 0 || time.Now().Before(until))
		})
		if pid != 0 {
			break
		}
		if time.Now().After(until) {
			return 0, 0, p
		}
	}
	return pid, inode, 0
}

// otherEnd finds who has the other end of a stream, and that end's inode, 0 if it is elsewhere. Whom the socket
// names, who called listen or connect, is believed if it has that end. Else the descriptors of the node are looked
// through: some 20 ms for 500 processes, once for a stream. Where that takes longer, to is how far it came, and the
// next search begins behind that process (from); else it is 0.
func otherEnd(s *kernel.InsideStream, from int, keyOf keys) (actor event.Actor, inode uint64, to int) {
	inode = s.OtherIno
	if s.Family != unix.AF_UNIX {
		if net, err := procfs.OwnNamespace("net"); err != nil || net != s.Netns {
			return actor, 0, 0
		}
		inode, _ = sockets.TCP(addressOf(s.OtherAddress, s.OtherPort), addressOf(s.OwnAddress, s.OwnPort))
	}
	if inode == 0 {
		return actor, 0, 0
	}
	wanted := func(found uint64) bool { return found == inode }
	if told := int(s.Other.Pid); told > 1 && s.Other.Start != 0 {
		if pid, _, _ := holder([]int{told}, wanted); pid != 0 {
			return event.Actor{Process: kernel.ProcessOf(s.Other), PID: s.Other.Pid, Name: Program(s.Other.Pid)}, inode, 0
		}
	}
	pids, _ := procfs.All()
	slices.Sort(pids)
	pids = slices.DeleteFunc(pids, func(p int) bool { return p <= from })
	pid, _, to := holder(pids, wanted)
	return actorOf(pid, keyOf), inode, to
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
	inode   uint64 // of the end of who is waited for
	network string
}

// suspectsOf finds them, stopped, frozen or not to be interrupted, among those that may serve: what a pod does with
// processes of its own says nothing. It begins behind the process from, and returns how far it came; 0: through. Nearly
// always nobody stands still, and it takes as long as reading what each process does.
func suspectsOf(pid uint32, from int, mayServe func(uint32) bool, keyOf keys) (found []suspect, to int) {
	var still []int
	pids, _ := procfs.All()
	slices.Sort(pids)
	until := time.Now().Add(searchFor)
	for _, p := range pids {
		if p <= max(from, 1) || uint32(p) == pid {
			continue
		}
		if standsStill(p) && mayServe(uint32(p)) {
			still = append(still, p)
		}
		if time.Now().After(until) {
			to = p
			break
		}
	}
	if len(still) == 0 {
		return nil, to
	}
	streams, _ := sockets.Streams()
	others := map[uint64]bool{}
	_ = procfs.Descriptors(int(pid), func(_ int, target string) bool {
		if other := streams[socketIn(target)]; other.Inode != 0 {
			others[other.Inode] = true
		}
		return true
	})
	for _, p := range still {
		if holds, inode, _ := holder([]int{p}, func(inode uint64) bool { return others[inode] }); holds != 0 {
			if actor := actorOf(p, keyOf); actor.PID != 0 {
				found = append(found, suspect{actor, streams[inode].Inode, streams[inode].Network})
			}
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
