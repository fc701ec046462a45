package agents

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	sockets "github.com/cniscope/cniscope/pkg/peer"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// maxSuspects is how many processes that stand still are looked into at once.
const maxSuspects = 32

// otherEnd finds who has the other end of a stream, and that end's inode, 0 if it is elsewhere. Whom the socket
// names, who called listen or connect, is believed if it has that end, and is not the first process, which listens for
// others. Else all descriptors of the node are looked through: some 20 ms for 500 processes, once for a stream; if the numbers in
// /proc are the kernel's.
func otherEnd(s *kernel.InsideStream, initial bool) (actor event.Actor, inode uint64) {
	inode = s.OtherIno
	if s.Family != unix.AF_UNIX {
		if net, err := procfs.OwnNamespace("net"); err != nil || net != s.Netns {
			return actor, 0
		}
		inode, _ = sockets.TCP(addressOf(s.OtherAddress, s.OtherPort), addressOf(s.OwnAddress, s.OwnPort))
	}
	if inode == 0 {
		return actor, 0
	}
	wanted := map[uint64]bool{inode: true}
	if told := int(s.Other.Pid); told > 1 && s.Other.Start != 0 && len(sockets.Holders([]int{told}, wanted)) > 0 {
		return event.Actor{Process: kernel.ProcessOf(s.Other), PID: s.Other.Pid, Name: Program(s.Other.Pid)}, inode
	}
	if !initial {
		return actor, inode
	}
	pids, _ := procfs.All()
	holders := sockets.Holders(pids, wanted)[inode]
	slices.Sort(holders)
	for _, pid := range slices.Compact(holders) {
		if process := processOf(uint32(pid)); pid > 1 && process != "" {
			return event.Actor{Process: process, PID: uint32(pid), Name: Program(uint32(pid))}, inode
		}
	}
	return actor, inode
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

// suspectsOf finds them: stopped, frozen or not to be interrupted. Nearly always there is none, which takes as long
// as reading what each process does.
func suspectsOf(pid uint32) (found []suspect) {
	var still []int
	pids, _ := procfs.All()
	for _, p := range pids {
		if uint32(p) != pid && p > 1 && len(still) < maxSuspects && standsStill(p) {
			still = append(still, p)
		}
	}
	if len(still) == 0 {
		return nil
	}
	own, others := map[uint64]bool{}, map[uint64]bool{}
	_ = procfs.Descriptors(int(pid), func(_ int, target string) bool {
		if inode := socketIn(target); inode != 0 {
			own[inode] = true
		}
		return true
	})
	streams, _ := sockets.Streams()
	for inode := range own {
		if other := streams[inode]; other.Inode != 0 {
			others[other.Inode] = true
		}
	}
	for inode, holders := range sockets.Holders(still, others) {
		process := processOf(uint32(holders[0]))
		if process == "" {
			continue
		}
		actor := event.Actor{Process: process, PID: uint32(holders[0]), Name: Program(uint32(holders[0]))}
		found = append(found, suspect{actor, streams[inode].Inode, streams[inode].Network})
	}
	return found
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
