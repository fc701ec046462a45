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

// Insert has a process followed, unless it is already: then it is false. Ever after the
// programs look for its number in the table (bpf/maps.h, slots: a high number will do).
func (s *Side) Insert(p *LifeProcess) bool {
	_ = s.Life.Slots.Put(p.Self.Tgid%s.Life.Slots.MaxEntries(), uint32(1<<16))
	if s.Life.Processes.Update(p.Self.Tgid, p, ebpf.UpdateNoExist) != nil {
		return false
	}
	if hasShare(p) {
		s.shareLeft(-1)
	}
	s.join(p.Root)
	return true
}

// Watch has the programs remembered that a server runs while it is not followed. Of two whose numbers fall
// into one place only the later one is watched.
func (s *Side) Watch(server Key) {
	_ = s.Life.Servers.Put(server.Tgid%s.Life.Servers.MaxEntries(), LifeWatched{Server: watched(server)})
}

// watched is how the table has a server: its start to a tick, as /proc tells it.
func watched(server Key) LifeServer {
	return LifeServer{Start: server.Start - server.Start%uint64(procfs.Tick), Tgid: server.Tgid}
}

// Habits are the programs that a watched server ran while it was not followed, by as much of their names
// as the kernel keeps (15 bytes).
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

// Process is the entry of a process; false if it is not followed.
func (s *Side) Process(tgid uint32) (p LifeProcess, ok bool) {
	return p, s.Life.Processes.Lookup(tgid, &p) == nil
}

// Remove ends following a process.
func (s *Side) Remove(p *LifeProcess) {
	if s.Life.Processes.Delete(p.Self.Tgid) != nil { // gone by itself is as good
		return
	}
	s.leave(p)
	if hasShare(p) {
		s.shareLeft(+1)
	}
}

// hasShare reports whether a process counts against the share of what is believed without an anchor.
func hasShare(p *LifeProcess) bool { return LifeCaller(p.Caller) >= LifeCallerCALLER_HOST }

// shareLeft says that the reader took such a process out of the table (+1), or put one in (-1).
// The kernel side counts for itself.
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

// ForgetCalls empties what is kept of system calls and connections under way: nobody will
// tell of their ends. Call it when the gate has been closed.
func (s *Side) ForgetCalls() {
	clearMap[uint32, LifeCall](s.Life.Calls)
	removeFrom(s.Inside.Conns, func(_ uint64, c *InsideConn) bool {
		s.disconnect(c.P.Root)
		return true
	})
	clearMap[InsidePair, InsideHalf](s.Inside.Pairs)
	removeFrom(s.Inside.Streams, func(_ uint64, t *InsideStream) bool {
		s.hangUp(t.Root)
		return true
	})
	clearMap[uint32, InsideContended](s.Inside.Contentions)
	s.forgetPipes()
}

// ForgetGone drops what is kept of processes and threads that are gone: files that a process leaves open are
// closed without a system call, and of threads that end at once the last one takes their process out of the
// table before the others are through. numbers were in the table a moment ago; follows reports whether the
// reader still knows a process, of which records may be on their way.
func (s *Side) ForgetGone(now int64, numbers map[uint32]bool, follows func(Key) bool) {
	var p LifeProcess
	untracked := func(tgid uint32) bool {
		return !numbers[tgid] && errors.Is(s.Life.Processes.Lookup(tgid, &p), ebpf.ErrKeyNotExist)
	}
	removeFrom(s.Inside.Conns, func(_ uint64, c *InsideConn) bool {
		if follows(c.P.Self) || !untracked(c.P.Self.Tgid) {
			return false
		}
		s.disconnect(c.P.Root)
		return true
	})
	removeFrom(s.Inside.Streams, func(_ uint64, t *InsideStream) bool {
		if !untracked(t.Self.Tgid) {
			return false
		}
		s.hangUp(t.Root)
		return true
	})
	var conn InsideConn
	removeFrom(s.Inside.Pairs, func(_ InsidePair, h *InsideHalf) bool {
		return s.Inside.Conns.Lookup(h.Sk, &conn) != nil || conn.Ino != h.Ino
	})
	removeFrom(s.Life.Calls, func(_ uint32, c *LifeCall) bool { return untracked(c.Tgid) })
	removeFrom(s.Inside.Awaited, func(_ uint64, since *uint64) bool { return now-int64(*since) > int64(ConnectedWithin) })
}

// ConnectedWithin is how long the first connection of a pod is waited for.
const ConnectedWithin = time.Minute

// Counters are the kernel's counters, as they are in memory: they are read twenty times a second, and at any time,
// also after Close.
func (s *Side) Counters() (counted [LifeCounterCOUNTERS]uint64) {
	if s.counters == nil { // it was never open
		return counted
	}
	var all [8 * len(counted)]byte
	_, _ = s.counters.ReadAt(all[:], 0) // the kernel maps whole pages
	for i := range counted {
		counted[i] = binary.NativeEndian.Uint64(all[8*i:])
	}
	return counted
}

// batch is how many entries of a kernel table are read by one system call. A table of 8192
// takes some 30 instead of 16,384.
const batch = 256

// Each calls f with every entry of one of the kernel's hash tables. f may delete it. What is put in meanwhile
// may be left out. A table that cannot be read has no entries: that must never stop the reader.
func Each[K, V any](m *ebpf.Map, f func(*K, *V)) {
	if m == nil { // the inside of plugins is not looked into
		return
	}
	var cursor ebpf.MapBatchCursor
	keys, values := make([]K, batch), make([]V, batch)
	for {
		n, err := m.BatchLookup(&cursor, keys, values, nil)
		for i := range n {
			f(&keys[i], &values[i])
		}
		if err != nil {
			return
		}
	}
}

func clearMap[K, V any](m *ebpf.Map) {
	removeFrom(m, func(K, *V) bool { return true })
}

// removeFrom deletes the entries that gone says are.
func removeFrom[K, V any](m *ebpf.Map, gone func(K, *V) bool) {
	Each(m, func(key *K, value *V) {
		if gone(*key, value) {
			_ = m.Delete(*key) // gone by itself is as good
		}
	})
}
