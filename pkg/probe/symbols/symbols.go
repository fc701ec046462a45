// Package symbols tells which of the kernel's locks a stack waits for, by the names of the
// functions on it. It owns what is kept of /proc/kallsyms.
package symbols

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Table names the functions of the kernel. To keep all 100,000 would take megabytes, so
// only those are kept that tell which lock is waited for. For any other address
// /proc/kallsyms is read again by another goroutine: that takes 90 ms of a CPU, and half a
// second where many want it. The next wait at that place has its name.
//
// The zero Table knows no names. A Table is used by one goroutine.
type Table struct {
	file io.ReadSeeker // /proc/kallsyms; nil where it cannot be had
	// owners are the functions of the table of that name, in the order of their addresses.
	owners []function
	known  map[uint64]string
	// asked are addresses that the file is to be read for, and answer what it said; nil
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

// reading is what the file said.
type reading struct {
	names  map[uint64]string
	owners []function
	whole  bool // all of it was read
}

const (
	// readEvery is how often the table is read at most, so that it is 2 % of a CPU.
	readEvery = 5 * time.Second
	// maxSymbols is how many addresses are known, and maxAsked asked for at once.
	maxSymbols, maxAsked = 4096, 256
)

// Open opens the kernel's table. What that shows depends on the privileges at its opening
// (kernel/kallsyms.c, kallsyms_open), so call it before they are dropped. Where the table
// cannot be had, no name is known. It takes 90 ms of a CPU.
func Open() *Table {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return new(Table)
	}
	return newTable(f)
}

func newTable(file io.ReadSeeker) *Table {
	return &Table{file: file, known: map[uint64]string{}, owners: lookUp(file, nil).owners}
}

// Close waits until nobody reads the file, and closes it.
func (t *Table) Close() error {
	t.wait()
	if f, ok := t.file.(io.Closer); ok {
		return f.Close()
	}
	return nil
}

// Lock names the lock that whoever has this stack, innermost address first, waits for; or
// the first caller that is known; empty where neither is. now is monotonic time in ns.
func (t *Table) Lock(now int64, stack []uint64) string { return lockOf(t.names(now, stack)) }

// pending is the name of a function that will be known the next time.
const pending = "?"

// names returns the functions that the addresses lie in; an empty name where that is not known.
func (t *Table) names(now int64, addresses []uint64) []string {
	t.take(now)
	names := make([]string, len(addresses))
	for i, a := range addresses {
		if names[i] = t.owner(a); names[i] != "" {
			continue
		}
		name, known := t.known[a]
		if !known && t.file != nil {
			name = pending
			if len(t.asked) < maxAsked && !slices.Contains(t.asked, a) {
				t.asked = append(t.asked, a)
			}
		}
		names[i] = name
	}
	return names
}

// take begins to read the table if that is asked for, and takes what it said.
func (t *Table) take(now int64) {
	select {
	case got := <-t.answer:
		t.answer = nil
		if !got.whole { // what is known stays
			break
		}
		t.owners = got.owners
		if len(t.known)+len(got.names) > maxSymbols {
			clear(t.known)
		}
		maps.Copy(t.known, got.names)
	default:
	}
	if t.answer != nil || len(t.asked) == 0 || t.read != 0 && now-t.read < int64(readEvery) {
		return
	}
	t.read, t.answer = now, make(chan reading, 1)
	go func(asked []uint64, to chan<- reading) { to <- lookUp(t.file, asked) }(t.asked, t.answer)
	t.asked = nil
}

// wait waits until nobody reads the table.
func (t *Table) wait() {
	if t.answer != nil {
		<-t.answer
		t.answer = nil
	}
}

// owner names the function that an address lies in if it tells which lock is waited for.
func (t *Table) owner(address uint64) string {
	i, found := slices.BinarySearchFunc(t.owners, address, func(f function, a uint64) int { return cmp.Compare(f.start, a) })
	if !found {
		i--
	}
	if i < 0 || address >= t.owners[i].end {
		return ""
	}
	return t.owners[i].name
}

// lookUp reads the whole file: the names of some addresses, each the last function that
// begins at it or before, and the owners of locks.
func lookUp(file io.ReadSeeker, addresses []uint64) (got reading) {
	got.names = map[uint64]string{}
	nearest := make([]struct {
		start uint64
		name  []byte
	}, len(addresses))
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return got
	}
	starts := make([]uint64, 0, functionsUsual)
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		at, name, ok := symbol(lines.Bytes())
		if !ok {
			continue
		}
		starts = append(starts, at)
		for i, a := range addresses {
			if n := &nearest[i]; at <= a && at >= n.start {
				n.start, n.name = at, append(n.name[:0], name...)
			}
		}
		if ownerOf(name) != "" {
			got.owners = append(got.owners, function{start: at, name: string(name)})
		}
	}
	got.whole = lines.Err() == nil
	for i, a := range addresses {
		got.names[a] = string(nearest[i].name)
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

// functionsUsual is how many functions a kernel has with room to spare: 90,000 on a Debian.
const functionsUsual = 1 << 17

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

// ownerOf is the lock that a function tells of; empty if it tells of none.
func ownerOf(function []byte) string {
	for i := range owners {
		for _, p := range owners[i].prefixes {
			if len(function) >= len(p) && string(function[:len(p)]) == p { // of each of 100,000 names: nothing is copied
				return owners[i].lock
			}
		}
	}
	return ""
}

// lockOf names a lock by the stack of who waits for it.
func lockOf(stack []string) string {
	caller := ""
	for _, function := range stack {
		if lock := ownerOf([]byte(function)); lock != "" {
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
