package probe

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
)

// symbols name the functions of the kernel. To keep all 100,000 would take megabytes, so
// only those are kept that tell which lock is waited for. For any other address the table is
// read again, beside the reader: that takes 90 ms of a CPU, and half a second where many
// want it. The next wait at that place has its name.
type symbols struct {
	table io.ReadSeeker // /proc/kallsyms; nil where it cannot be had
	file  io.Closer     // the same; nil where it is a test's
	// owners are the functions of the table of that name, in the order of their addresses.
	owners []function
	known  map[uint64]string
	// asked are addresses that the table is to be read for, and answer what it said; nil
	// while nobody reads it.
	asked  []uint64
	answer chan reading
	read   int64 // when that began
}

// function is one of the kernel's, up to the next.
type function struct {
	start, end uint64
	name       string
}

// reading is what the table said.
type reading struct {
	names  map[uint64]string
	owners []function
}

const (
	// readEvery is how often the table is read at most, so that it is 2 % of a CPU.
	readEvery = 5 * time.Second
	// maxSymbols is how many addresses are known, and maxAsked asked for at once.
	maxSymbols, maxAsked = 4096, 256
)

// openSymbols opens the kernel's table, if it is wanted and can be had, with every privilege
// that there is: what it shows goes by those of its opening (kernel/kallsyms.c,
// kallsyms_open). It takes 90 ms of a CPU.
func openSymbols(detail Detail) *symbols {
	if detail == DetailCommands {
		return newSymbols(nil)
	}
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return newSymbols(nil)
	}
	s := newSymbols(f)
	s.file = f
	return s
}

// close waits until nobody reads the table.
func (s *symbols) close() error {
	s.wait()
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

func newSymbols(table io.ReadSeeker) *symbols {
	s := &symbols{table: table, known: map[uint64]string{}}
	if table != nil {
		s.owners = lookUp(table, nil).owners
	}
	return s
}

// pending is the name of a function that will be known the next time.
const pending = "?"

// names returns the functions that the addresses lie in; an empty name where that is not
// known.
func (s *symbols) names(now int64, addresses []uint64) []string {
	s.take(now)
	names := make([]string, len(addresses))
	for i, a := range addresses {
		if names[i] = s.owner(a); names[i] != "" {
			continue
		}
		name, known := s.known[a]
		if !known && s.table != nil {
			name = pending
			if len(s.asked) < maxAsked && !slices.Contains(s.asked, a) {
				s.asked = append(s.asked, a)
			}
		}
		names[i] = name
	}
	return names
}

// take begins to read the table if that is asked for, and takes what it said.
func (s *symbols) take(now int64) {
	select {
	case got := <-s.answer:
		s.answer = nil
		s.owners = got.owners
		if len(s.known)+len(got.names) > maxSymbols {
			clear(s.known)
		}
		maps.Copy(s.known, got.names)
	default:
	}
	if s.answer != nil || len(s.asked) == 0 || s.read != 0 && now-s.read < int64(readEvery) {
		return
	}
	s.read, s.answer = now, make(chan reading, 1)
	go func(asked []uint64, to chan<- reading) { to <- lookUp(s.table, asked) }(s.asked, s.answer)
	s.asked = nil
}

// wait waits until nobody reads the table.
func (s *symbols) wait() {
	if s.answer != nil {
		<-s.answer
		s.answer = nil
	}
}

// owner names the function that an address lies in if it tells which lock is waited for.
func (s *symbols) owner(address uint64) string {
	i, found := slices.BinarySearchFunc(s.owners, address, func(f function, a uint64) int { return cmp.Compare(f.start, a) })
	if !found {
		i--
	}
	if i < 0 || address >= s.owners[i].end {
		return ""
	}
	return s.owners[i].name
}

// lookUp reads the whole table: the names of some addresses, each the last function that
// begins at it or before, and the owners of locks.
func lookUp(table io.ReadSeeker, addresses []uint64) reading {
	got := reading{names: map[uint64]string{}}
	best := make([]uint64, len(addresses))
	for _, a := range addresses {
		got.names[a] = ""
	}
	if _, err := table.Seek(0, io.SeekStart); err != nil {
		return got
	}
	var starts []uint64
	for lines := bufio.NewScanner(table); lines.Scan(); {
		at, name, ok := symbol(lines.Bytes())
		if !ok {
			continue
		}
		starts = append(starts, at)
		for i, a := range addresses {
			if at <= a && at >= best[i] {
				best[i] = at
				got.names[a] = string(name)
			}
		}
		if ownerOf(string(name)) != "" {
			got.owners = append(got.owners, function{start: at, name: string(name)})
		}
	}
	slices.Sort(starts)
	slices.SortFunc(got.owners, func(a, b function) int { return cmp.Compare(a.start, b.start) })
	for i := range got.owners {
		o := &got.owners[i]
		next, _ := slices.BinarySearch(starts, o.start+1)
		if o.end = o.start + 1; next < len(starts) {
			o.end = starts[next]
		}
	}
	return got
}

// symbol takes one line of the table apart: address, kind, name, perhaps the module. False
// for what is no function.
func symbol(line []byte) (at uint64, name []byte, ok bool) {
	address, rest, _ := bytes.Cut(line, []byte(" "))
	kind, name, _ := bytes.Cut(rest, []byte(" "))
	if len(kind) != 1 || strings.IndexByte("tTwW", kind[0]) < 0 {
		return 0, nil, false
	}
	at, err := strconv.ParseUint(string(address), 16, 64)
	name, _, _ = bytes.Cut(name, []byte("\t"))
	name, _, _ = bytes.Cut(name, []byte("."))
	return at, name, err == nil && at != 0 // zeros: we may not know (kptr_restrict)
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
	w.Name = lockOf(in.symbols.names(int64(r.H.Time), stack))
	if w.Name == "" { // names of functions are kept from us (kptr_restrict)
		w.Name = "kernel"
		if r.Port != 0 {
			w.Name = locksOf(r.Protocol)
		}
	}
	return w
}

// ownerOf is the lock that a function tells of; empty if it tells of none.
func ownerOf(function string) string {
	for _, o := range owners {
		if slices.ContainsFunc(o.prefixes, func(p string) bool { return strings.HasPrefix(function, p) }) {
			return o.lock
		}
	}
	return ""
}

// lockOf names a lock by the stack of who waits for it.
func lockOf(stack []string) string {
	caller := ""
	for _, function := range stack {
		if lock := ownerOf(function); lock != "" {
			return lock
		}
		if function == pending { // it may be the one
			caller = pending
		}
		if caller == "" && function != "" && !strings.Contains(function, "mutex") && !strings.Contains(function, "contention") && !strings.HasPrefix(function, "bpf_") {
			caller = function
		}
	}
	if caller == pending {
		return ""
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
