package connector

import (
	"encoding/binary"

	"github.com/cniscope/cniscope/pkg/probe/proctracker"
)

// What the kernel sends: struct nlmsghdr, cn_msg and proc_event (include/uapi/linux/{netlink,connector,
// cn_proc}.h), in the machine's byte order. Offsets are into the whole message.
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
	messageMax    = offsetData + 24 // the longest event: of a program's name, or an exit

	whatFork = 0x1
	whatExec = 0x2
	whatComm = 0x200
	whatExit = 0x80000000
)

// message is one that the kernel sent.
type message struct {
	what, cpu, seq uint32
	time           int64
	// data are the first words of the event itself.
	data [4]uint32
}

// parse reads a message; false if it is none of a process.
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

// notice is what a message says of a process; false if it is about a thread, or something else. That a thread
// ran another program is told by the process's number, which the thread takes over.
func (m message) notice(status func(uint32) (uint32, string)) (n proctracker.Notice, ok bool) {
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
		n.Code, n.Signal = status(m.data[2])
		return n, m.data[0] == m.data[1]
	}
	return n, false
}

// gaps finds messages that never came: each CPU numbers its own. Before Linux 6.6 a message may be
// overtaken between its number and its sending, so a number has until deadline to come.
type gaps struct {
	next    map[uint32]uint32
	missing map[place]int64 // since when, in monotonic ns
}

type place struct{ cpu, seq uint32 }

// missingMax bounds the numbers that are waited for. What is more is lost at once.
const missingMax = 4096

func newGaps() *gaps { return &gaps{next: map[uint32]uint32{}, missing: map[place]int64{}} }

// take notes a number that came, and returns how many before it are lost for certain.
func (g *gaps) take(m message, now int64) (lost uint64) {
	next, known := g.next[m.cpu]
	ahead := m.seq - next // modulo 2^32
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

// overdue gives up the numbers that are missing since before then, and returns how many that are.
func (g *gaps) overdue(before int64) (lost uint64) {
	for at, since := range g.missing {
		if since < before {
			delete(g.missing, at)
			lost++
		}
	}
	return lost
}

// forget begins anew: after what the socket itself has told of.
func (g *gaps) forget() {
	clear(g.next)
	clear(g.missing)
}
