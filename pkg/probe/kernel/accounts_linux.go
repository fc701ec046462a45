package kernel

import "github.com/cilium/ebpf"

// ByteTime is BYTE_NS of bpf/maps.h: what a byte in the ring costs a root.
const ByteTime = 238

// roomMin is ROOM_MIN of bpf/maps.h: the bytes a root may send at once however small the ring
// is, half of the smallest (64 KiB). A quarter of that was less than one plugin has to tell.
const roomMin = 32 << 10

// Quota is how far ahead of its quota a root may be, in ns: what it may send at once, if that is read
// meanwhile, is half of the ring. Forks and execs may be as far ahead again.
func Quota(ring int) uint64 { return uint64(max(ring/2, roomMin)) * ByteTime }

// share is how much of a table one root may take: a quarter, so that one that forks or
// makes threads for ever leaves room for all others.
func share(entries int) int32 { return int32(max(entries/4, 1)) }

// join counts a process that the reader put into the kernel's table, and leave one that it
// took out. The kernel side does so with all others. Where both change one account at once one
// of them may be miscounted, which is mended when the root is gone; an account that the kernel
// side has made or dropped meanwhile is neither overwritten nor brought back.
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

// disconnect counts a connection that the reader took out of the kernel's table.
func (s *Side) disconnect(root Key) {
	s.account(root, func(a *LifeAccount) { a.Conns = max(a.Conns-1, 0) })
}

// hangUp counts a stream that the reader took out of the kernel's table.
func (s *Side) hangUp(root Key) {
	s.account(root, func(a *LifeAccount) { a.Streams = max(a.Streams-1, 0) })
}

// account changes that of a root, if it has one; one without a process is dropped.
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

// ForgetAccounts drops those of roots that have no process, and had none at the sweep
// before. It returns what the next one is to be given.
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
