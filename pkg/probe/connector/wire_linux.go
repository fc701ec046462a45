package connector

import (
	"encoding/binary"

	"github.com/cniscope/cniscope/pkg/probe/proctracker"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// struct nlmsghdr, cn_msg and proc_event (include/uapi/linux/{netlink,connector,cn_proc}.h), in native byte order.
const (
	idxProc, valProc = 1, 1 // CN_IDX_PROC, CN_VAL_PROC
	mcastListen      = 1    // PROC_CN_MCAST_LISTEN
	mcastIgnore      = 2    // PROC_CN_MCAST_IGNORE

	sizeofHeaders = 16 + 20 // nlmsghdr, cn_msg
	offsetSeq     = 16 + 8
	offsetWhat    = sizeofHeaders
	offsetCPU     = offsetWhat + 4
	offsetTime    = offsetWhat + 8
	offsetData    = offsetWhat + 16
	messageMax    = offsetData + 24 // comm or exit

	whatFork = 0x1
	whatExec = 0x2
	whatExit = 0x80000000
)

type message struct {
	what, cpu, seq uint32
	time           int64
	data           [4]uint32
}

func parse(b []byte) (m message, ok bool) {
	word := binary.NativeEndian.Uint32
	if len(b) < offsetData || word(b[16:]) != idxProc || word(b[20:]) != valProc {
		return m, false
	}
	m = message{
		what: word(b[offsetWhat:]), cpu: word(b[offsetCPU:]), seq: word(b[offsetSeq:]),
		time: int64(binary.NativeEndian.Uint64(b[offsetTime:])),
	}
	for i := range m.data {
		if at := offsetData + 4*i; len(b) >= at+4 {
			m.data[i] = word(b[at:])
		}
	}
	return m, true
}

// notice returns false for a thread. A thread's exec has the process's number.
func (m message) notice() (n proctracker.Notice, ok bool) {
	n.Time = m.time
	switch m.what {
	case whatFork:
		n.Kind, n.Parent, n.PID = proctracker.Began, m.data[1], m.data[3]
		return n, m.data[2] == m.data[3]
	case whatExec:
		n.Kind, n.PID = proctracker.Runs, m.data[1]
		return n, true
	case whatExit:
		n.Kind, n.PID = proctracker.Ended, m.data[1]
		n.Code, n.Signal = procfs.ExitOf(m.data[2])
		return n, m.data[0] == m.data[1]
	}
	return n, false
}

// gaps has a deadline, because before Linux 6.6 messages may overtake each other.
type gaps struct {
	next    map[uint32]uint32
	missing map[place]int64 // monotonic ns
}

type place struct{ cpu, seq uint32 }

const missingMax = 4096

func newGaps() *gaps { return &gaps{next: map[uint32]uint32{}, missing: map[place]int64{}} }

func (g *gaps) take(m message, now int64) (lost uint64) {
	next, known := g.next[m.cpu]
	ahead := m.seq - next
	switch {
	case !known:
	case int32(ahead) < 0:
		delete(g.missing, place{m.cpu, m.seq})
		return 0
	case uint64(ahead)+uint64(len(g.missing)) > missingMax:
		lost = uint64(ahead)
	default:
		for i := range ahead {
			g.missing[place{m.cpu, next + i}] = now
		}
	}
	g.next[m.cpu] = m.seq + 1
	return lost
}

func (g *gaps) overdue(before int64) (lost uint64) {
	for at, since := range g.missing {
		if since < before {
			delete(g.missing, at)
			lost++
		}
	}
	return lost
}

func (g *gaps) forget() {
	clear(g.next)
	clear(g.missing)
}
