package kernel

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/procfs"
)

// Insert follows a process; false if followed already. Slots may have false positives (bpf/maps.h).
func (s *Side) Insert(p *LifeProcess) bool {
	_ = s.Life.Slots.Put(p.Self.Tgid%s.Life.Slots.MaxEntries(), uint32(1<<30|1<<15))
	if s.Life.Processes.Update(p.Self.Tgid, p, ebpf.UpdateNoExist) != nil {
		return false
	}
	if hasShare(p) {
		s.shareLeft(-1)
	}
	s.join(p.Root)
	return true
}

// Watch records an unfollowed server's programs; one per slot.
func (s *Side) Watch(server Key) {
	_ = s.Life.Servers.Put(server.Tgid%s.Life.Servers.MaxEntries(), LifeWatched{Server: watched(server)})
}

// watched cuts the start to a tick, as in /proc.
func watched(server Key) LifeServer {
	return LifeServer{Start: server.Start - server.Start%uint64(procfs.Tick), Tgid: server.Tgid}
}

// Habits returns the names (15 bytes) of the programs that a watched server ran.
func (s *Side) Habits(server Key) (programs []string) {
	Each(s.Life.Habits, func(h *LifeHabit, _ *uint8) {
		if h.Server == watched(server) {
			var name []byte
			for _, letters := range h.Comm {
				name = binary.NativeEndian.AppendUint64(name, letters)
			}
			programs = append(programs, unix.ByteSliceToString(name))
		}
	})
	slices.Sort(programs)
	return programs
}

// Publishes stores a program's builds.ThreadContext; nil: none. It fails if the table is full.
func (s *Side) Publishes(program LifePublisher, offset *int64) error {
	if offset == nil {
		_ = s.Life.Publishers.Delete(program)
		return nil
	}
	_ = s.Life.Publishing.Put(uint32(0), uint32(1)) // first: a stored program is read from then on
	return s.Life.Publishers.Put(program, *offset)
}

// Process returns an entry of the process table; false if the process is not followed.
func (s *Side) Process(tgid uint32) (p LifeProcess, ok bool) {
	return p, s.Life.Processes.Lookup(tgid, &p) == nil
}

// Remove stops following a process.
func (s *Side) Remove(p *LifeProcess) {
	if s.Life.Processes.Delete(p.Self.Tgid) != nil {
		return
	}
	s.leave(p)
	if hasShare(p) {
		s.shareLeft(+1)
	}
}

// hasShare reports whether a process counts against the share of callers without an anchor.
func hasShare(p *LifeProcess) bool { return LifeCaller(p.Caller) >= LifeCallerCALLER_HOST }

func (s *Side) shareLeft(by int32) {
	s.left += by
	_ = s.Life.Beliefs.Put(uint32(LifeBeliefSHARE_LEFT), uint32(s.left))
}

func flag(is bool) uint32 {
	if is {
		return 1
	}
	return 0
}

// ForgetCalls drops pending calls and connections, after the gate closed.
func (s *Side) ForgetCalls() {
	clearMap[uint32, LifeCall](s.Life.Calls)
	s.disconnect(func(*InsideConn) bool { return true })
	clearMap[InsidePair, InsideHalf](s.Inside.Pairs)
	s.hangUp(func(*InsideStream) bool { return true })
	clearMap[uint32, InsideContended](s.Inside.Contentions)
	s.recount()
	s.forgetPipes()
}

// recount corrects the counts of waiting threads (bpf/waits.h). It may lose a wait that begins or ends during it.
func (s *Side) recount() {
	waiting := make([]byte, s.Inside.Waiting.ValueSize())
	Each(s.Life.Calls, func(tid *uint32, c *LifeCall) {
		if c.Since != 0 {
			n := waiting[4*int(*tid)%len(waiting):]
			binary.NativeEndian.PutUint32(n, binary.NativeEndian.Uint32(n)+1)
		}
	})
	_ = s.Inside.Waiting.Put(uint32(0), waiting)
	s.uncounted = 0
}

// uncountedMax: a count that stays slows each switch to a thread of its slot, one of 4,096.
const uncountedMax = 64

// ForgetGone drops what exits leave: they close files without a system call, and the last thread may remove its
// process early. numbers were recent; follows: records may still come.
func (s *Side) ForgetGone(now int64, numbers map[uint32]bool, follows func(Key) bool) {
	var p LifeProcess
	untracked := func(tgid uint32) bool {
		return !numbers[tgid] && errors.Is(s.Life.Processes.Lookup(tgid, &p), ebpf.ErrKeyNotExist)
	}
	s.disconnect(func(c *InsideConn) bool { return !follows(c.P.Self) && untracked(c.P.Self.Tgid) })
	s.hangUp(func(t *InsideStream) bool { return untracked(t.Self.Tgid) })
	var conn InsideConn
	removeFrom(s.Inside.Pairs, func(_ InsidePair, h *InsideHalf) bool {
		return s.Inside.Conns.Lookup(h.Sk, &conn) != nil || conn.Ino != h.Ino
	})
	removeFrom(s.Life.Calls, func(_ uint32, c *LifeCall) bool {
		gone := untracked(c.Tgid)
		if gone && c.Since != 0 {
			s.uncounted++
		}
		return gone
	})
	if s.uncounted >= uncountedMax {
		s.recount()
	}
	removeFrom(s.Inside.Awaited, func(_ uint64, since *uint64) bool { return now-int64(*since) > int64(ConnectedWithin) })
}

// ConnectedWithin bounds the wait for a pod's first connection.
const ConnectedWithin = time.Minute

// Counters is cheap, and valid after Close.
func (s *Side) Counters() [LifeCounterCOUNTERS]uint64 { return s.counters.read() }

// batch: 30 system calls for a table of 8192.
const few, batch = 16, 256

// Each may miss concurrent additions; f may delete. Unreadable tables count as empty.
func Each[K, V any](m *ebpf.Map, f func(*K, *V)) {
	if m == nil {
		return
	}
	var cursor ebpf.MapBatchCursor
	for keys, values := make([]K, few), make([]V, few); ; {
		n, err := m.BatchLookup(&cursor, keys, values, nil)
		for i := range n {
			f(&keys[i], &values[i])
		}
		if err != nil {
			return
		}
		if len(keys) < batch {
			keys, values = make([]K, batch), make([]V, batch)
		}
	}
}

func clearMap[K, V any](m *ebpf.Map) {
	removeFrom(m, func(K, *V) bool { return true })
}

func removeFrom[K, V any](m *ebpf.Map, gone func(K, *V) bool) {
	Each(m, func(key *K, value *V) {
		if gone(*key, value) {
			_ = m.Delete(*key)
		}
	})
}
