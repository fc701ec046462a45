package probe

import (
	"bufio"
	"encoding/binary"
	"io"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
)

// symbols name the functions of the kernel. To keep all 100,000 would take megabytes, so
// the table is read again for an address that is new; there are few of those.
type symbols struct {
	table io.ReadSeeker // /proc/kallsyms; nil where it cannot be had
	known map[uint64]string
	reads int
}

// maxReads bounds how often the table is read (50 ms each).
const maxReads = 64

// newSymbols reads from a table that was opened with every privilege that there is: what
// it shows goes by those of its opening (kernel/kallsyms.c, kallsyms_open).
func newSymbols(table io.ReadSeeker) *symbols {
	return &symbols{table: table, known: map[uint64]string{}}
}

// name returns the functions that the addresses lie in; an empty name where that is not
// known.
func (s *symbols) name(addresses []uint64) []string {
	var unknown []uint64
	for _, a := range addresses {
		if _, ok := s.known[a]; !ok {
			unknown = append(unknown, a)
		}
	}
	if len(unknown) > 0 && s.reads < maxReads {
		s.reads++
		s.read(unknown)
	}
	names := make([]string, len(addresses))
	for i, a := range addresses {
		names[i] = s.known[a]
	}
	return names
}

// read finds for each address the last function that begins at it or before.
func (s *symbols) read(addresses []uint64) {
	best := make([]uint64, len(addresses))
	for _, a := range addresses {
		s.known[a] = ""
	}
	if s.table == nil {
		return
	}
	if _, err := s.table.Seek(0, io.SeekStart); err != nil {
		return
	}
	for lines := bufio.NewScanner(s.table); lines.Scan(); {
		address, rest, _ := strings.Cut(lines.Text(), " ")
		kind, name, _ := strings.Cut(rest, " ")
		if kind = strings.ToLower(kind); kind != "t" && kind != "w" {
			continue
		}
		at, err := strconv.ParseUint(address, 16, 64)
		if err != nil || at == 0 { // zeros: we may not know (kptr_restrict)
			continue
		}
		for i, a := range addresses {
			if at <= a && at >= best[i] {
				best[i] = at
				name, _, _ := strings.Cut(name, "\t") // the module
				s.known[a], _, _ = strings.Cut(name, ".")
			}
		}
	}
}

// owners are the functions that tell which lock is waited for: the mutexes themselves
// have no name that can be had.
var owners = []struct {
	lock     string
	prefixes []string
}{
	{"rcu_barrier", []string{"netdev_run_todo", "rcu_barrier"}},
	{"nft commit", []string{"nft_rcv_nl_event", "nf_tables_", "nfnetlink_rcv_batch"}},
	{"nfnetlink", []string{"nfnl_"}},
	{"xt table", []string{"xt_"}},
	{"net namespaces", []string{"copy_net_ns", "cleanup_net"}},
	{"cgroup", []string{"cgroup_"}},
	{"pipe", []string{"pipe_"}},
	{"rtnl", []string{
		"rtnetlink_rcv_msg", "rtnl_", "devinet_", "dev_ioctl", "sock_do_ioctl", "inet6_rtm", "inet_rtm", "addrconf_",
		"register_netdev", "unregister_netdev",
	}},
}

// mutex is a wait for a lock of the kernel, named by the first caller that is known.
func (in *interior) mutex(r record) *event.Wait {
	w := &event.Wait{Process: r.process, Thread: r.Thread, Start: int64(r.Start), Kind: event.WaitMutex}
	if r.Other.Tgid != 0 {
		w.Holder = &event.Holder{Process: processKey(r.Other), PID: r.Other.Pid, Name: comm(r.Comm[:])}
	}
	var stack []uint64
	for b := r.data; len(b) >= 8; b = b[8:] {
		stack = append(stack, binary.NativeEndian.Uint64(b))
	}
	w.Name = lockOf(in.symbols.name(stack))
	if w.Name == "" { // names of functions are kept from us (kptr_restrict)
		w.Name = "kernel"
		if r.Port != 0 {
			w.Name = locksOf(r.Protocol)
		}
	}
	return w
}

// lockOf names a lock by the stack of who waits for it.
func lockOf(stack []string) string {
	caller := ""
	for _, function := range stack {
		for _, o := range owners {
			if slices.ContainsFunc(o.prefixes, func(p string) bool { return strings.HasPrefix(function, p) }) {
				return o.lock
			}
		}
		if caller == "" && function != "" && !strings.Contains(function, "mutex") && !strings.Contains(function, "contention") && !strings.HasPrefix(function, "bpf_") {
			caller = function
		}
	}
	return caller
}

// locksOf is the lock that a request over a netlink socket waits for, mostly.
func locksOf(protocol uint16) string {
	switch protocol {
	case unix.NETLINK_ROUTE:
		return "rtnl"
	case unix.NETLINK_NETFILTER:
		return "nft commit"
	}
	return "netlink"
}
