package kernel

import "github.com/cilium/ebpf"

// ByteTime is BYTE_NS of bpf/maps.h: ns per byte of the ring.
const ByteTime = 238

// roomMin is ROOM_MIN of bpf/maps.h: half of the smallest ring.
const roomMin = 32 << 10

// Quota is a root's credit in ns: half of the ring. Forks and execs have as much again.
func Quota(ring int) uint64 { return uint64(max(ring/2, roomMin)) * ByteTime }

func share(entries int) int32 { return int32(max(entries/4, 1)) }

// join and leave count the reader's changes; the kernel side counts its own. A race may miscount until the root
// exits.
func (s *Side) join(root Key) {
	if s.Life.Accounts.Update(root, LifeAccount{Processes: 1}, ebpf.UpdateNoExist) != nil {
		s.account(root, func(a *LifeAccount) { a.Processes++ })
	}
}

func (s *Side) leave(p *LifeProcess) {
	s.account(p.Root, func(a *LifeAccount) {
		a.Processes--
		a.Threads -= int32(p.Threads)
	})
}

func (s *Side) disconnect(gone func(*InsideConn) bool) {
	removeFrom(s.Inside.Conns, func(_ uint64, c *InsideConn) bool {
		is := gone(c)
		if is {
			s.account(c.P.Root, func(a *LifeAccount) { a.Conns = max(a.Conns-1, 0) })
		}
		return is
	})
}

func (s *Side) hangUp(gone func(*InsideStream) bool) {
	removeFrom(s.Inside.Streams, func(_ uint64, t *InsideStream) bool {
		is := gone(t)
		if is {
			s.account(t.Root, func(a *LifeAccount) { a.Streams = max(a.Streams-1, 0) })
		}
		return is
	})
}

func (s *Side) account(root Key, change func(*LifeAccount)) {
	var a LifeAccount
	if s.Life.Accounts.Lookup(root, &a) != nil {
		return
	}
	before := a.Processes
	if change(&a); a.Processes <= 0 && a.Processes < before {
		_ = s.Life.Accounts.Delete(root)
		return
	}
	_ = s.Life.Accounts.Update(root, a, ebpf.UpdateExist)
}

// ForgetAccounts drops accounts without a process in two sweeps. Pass its result on.
func (s *Side) ForgetAccounts(live map[Key]bool, before map[Key]bool) (idle map[Key]bool) {
	idle = map[Key]bool{}
	Each(s.Life.Accounts, func(root *Key, _ *LifeAccount) {
		switch {
		case live[*root]:
		case before[*root]:
			_ = s.Life.Accounts.Delete(*root)
		default:
			idle[*root] = true
		}
	})
	return idle
}
