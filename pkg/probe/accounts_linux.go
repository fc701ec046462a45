package probe

// byteTime is BYTE_NS of bpf/maps.h: what a byte in the ring costs a root.
const byteTime = 238

// roomMin is ROOM_MIN of bpf/maps.h: the bytes a root may send at once however small the ring
// is, half of the smallest (64 KiB). A quarter of that was less than one plugin has to tell.
const roomMin = 32 << 10

// quota is how far ahead of its quota a root may be, in ns: what it may send at once is a
// quarter of the ring. Forks and execs may be as far ahead again.
func quota(ring int) uint64 { return uint64(max(ring/4, roomMin)) * byteTime }

// share is how much of a table one root may take: a quarter, so that one that forks or
// makes threads for ever leaves room for all others.
func share(entries int) int32 { return int32(max(entries/4, 1)) }

// join counts a process that the reader put into the kernel's table, and leave one that it
// took out. The kernel side does so with all others; where both meet one may be miscounted,
// which is mended when the root is gone.
func (p *Probe) join(root taskKey) {
	var a bpfAccount
	if err := p.objects.Accounts.Lookup(root, &a); err != nil {
		a = bpfAccount{}
	}
	a.Processes++
	_ = p.objects.Accounts.Put(root, a)
}

func (p *Probe) leave(process *bpfProcess) {
	var a bpfAccount
	if p.objects.Accounts.Lookup(process.Root, &a) != nil {
		return
	}
	a.Processes--
	a.Threads -= int32(process.Threads)
	if a.Processes <= 0 {
		_ = p.objects.Accounts.Delete(process.Root)
		return
	}
	_ = p.objects.Accounts.Put(process.Root, a)
}

// disconnect counts a connection that the reader took out of the kernel's table.
func (p *Probe) disconnect(root taskKey) {
	var a bpfAccount
	if p.objects.Accounts.Lookup(root, &a) == nil && a.Conns > 0 {
		a.Conns--
		_ = p.objects.Accounts.Put(root, a)
	}
}

// forgetAccounts drops those of roots that have no process, and had none at the sweep
// before. It returns what the next one is to be given.
func (p *Probe) forgetAccounts(live map[taskKey]bool, before map[taskKey]bool) (idle map[taskKey]bool) {
	idle = map[taskKey]bool{}
	each(p.objects.Accounts, func(root *taskKey, _ *bpfAccount) {
		switch {
		case live[*root]:
		case before[*root]:
			_ = p.objects.Accounts.Delete(*root)
		default:
			idle[*root] = true
		}
	})
	return idle
}
