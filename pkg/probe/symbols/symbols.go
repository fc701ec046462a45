// Package symbols tells which of the kernel's locks a stack waits for, by the names of the
// functions on it. It owns what is kept of /proc/kallsyms.
package symbols

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Table names the functions of the kernel. Where the kernel can be asked for the name of an address, it is; of
// what it said a few thousand are kept.
//
// Elsewhere /proc/kallsyms is read. To keep all 100,000 functions would take megabytes, so
// only those are kept that tell which lock is waited for. The file is read again, by
// another goroutine, for code that was loaded since, which may hold more of these, and for
// the name of who waits where none of them is on the stack: that takes 70 ms of a CPU, and
// half a second where many want it. The next wait at that place has its name.
//
// The zero Table knows no names. A Table is used by one goroutine.
type Table struct {
	kernel asker         // nil where it cannot be asked
	file   io.ReadSeeker // /proc/kallsyms; nil where it cannot be had, or need not be
	layout
	known map[uint64]string
	// asked are addresses that the file is to be read for, and answer what it said; nil
	// while nobody reads it.
	asked  []uint64
	answer chan reading
	read   int64 // when that began
	pause  int64 // until it may begin again
	failed bool  // it was not read to its end the last time
}

// asker is the kernel, as far as it names the function that an address lies in; empty if it lies in none.
type asker interface {
	name(address uint64) string
	io.Closer
}

// layout is where functions lie.
type layout struct {
	// owners are the functions of the table of that name, in the order of their addresses.
	owners []function
	// extents are where there is code, in that order: none of what lies in one and in no owner tells of a lock.
	extents []extent
}

// function is one of the kernel's, up to the next.
type function struct {
	start, end uint64
	name       string
}

// extent is where functions follow one another.
type extent struct{ start, end uint64 }

// reading is what the file said.
type reading struct {
	layout
	names map[uint64]string
	whole bool // all of it was read
}

const (
	// readEvery is how soon the table is read again, and readRarely how soon once it was read a few times: each time
	// it is twice as long. So it is 1.5 % of a CPU at first, and 0.1 % where there is always somebody new who waits. Once
	// nobody new waited for readAnew it is as at first.
	readEvery, readRarely, readAnew = 5 * time.Second, 80 * time.Second, 10 * time.Minute
	// maxSymbols is how many addresses are known, and maxAsked asked for at once.
	maxSymbols, maxAsked = 4096, 256
)

func newTable(file io.ReadSeeker) *Table {
	return &Table{file: file, known: map[uint64]string{}, layout: lookUp(file, nil).layout}
}

// Close waits until nobody reads the file, and closes it.
func (t *Table) Close() (err error) {
	t.wait()
	if t.kernel != nil {
		err = t.kernel.Close()
	}
	if f, ok := t.file.(io.Closer); ok {
		err = errors.Join(err, f.Close())
	}
	return err
}

// Lock names the lock that whoever has this stack, innermost address first, waits for; or
// the first caller that is known; empty where neither is. now is monotonic time in ns.
func (t *Table) Lock(now int64, stack []uint64) string {
	if t.kernel != nil {
		return t.told(now, stack)
	}
	t.take(now)
	whole := true
	for _, a := range stack {
		if owner := t.owner(a); owner != "" {
			return ownerOf([]byte(owner))
		}
		if !t.placed(a) && !t.ask(a) { // it may be the one
			whole = false
		}
	}
	if !whole {
		return ""
	}
	return t.caller(stack)
}

// told is Lock where the kernel is asked.
func (t *Table) told(now int64, stack []uint64) (caller string) {
	if len(t.known) >= maxSymbols || now-t.read >= int64(readAnew) { // another module may lie there
		clear(t.known)
		t.read = now
	}
	for _, a := range stack {
		name, known := t.known[a]
		if !known {
			name = t.kernel.name(a)
			t.known[a] = name
		}
		if owner := ownerOf([]byte(name)); owner != "" {
			return owner
		}
		if caller == "" && !waits(name) {
			caller = name
		}
	}
	return caller
}

// caller names the innermost function of a stack that is no part of waiting itself.
func (t *Table) caller(stack []uint64) string {
	for i, a := range stack {
		if !t.ask(a) { // it may be the one; if it is not, the next: they are looked for together
			for _, next := range stack[i+1:] {
				t.ask(next)
			}
			return ""
		}
		if name := t.known[a]; name != "" && !waits(name) {
			return name
		}
	}
	return ""
}

// waits reports whether a function is of those that wait for a lock for whoever calls them, or of those that watch it.
func waits(function string) bool {
	return strings.Contains(function, "mutex") || strings.Contains(function, "contention") || strings.HasPrefix(function, "bpf_")
}

// ask reports whether it is known what the table says of an address, and has it looked for where it is not.
func (t *Table) ask(address uint64) bool {
	if _, known := t.known[address]; known || len(t.extents) == 0 { // all is kept from us (kptr_restrict)
		return true
	}
	if len(t.asked) < maxAsked && !slices.Contains(t.asked, address) {
		t.asked = append(t.asked, address)
	}
	return false
}

// take begins to read the table if that is asked for, and takes what it said.
func (t *Table) take(now int64) {
	select {
	case got := <-t.answer:
		t.answer = nil
		if t.failed = !got.whole; t.failed { // what is known stays
			break
		}
		t.layout = got.layout
		if len(t.known)+len(got.names) > maxSymbols {
			clear(t.known)
		}
		maps.Copy(t.known, got.names)
	default:
	}
	if t.answer != nil || len(t.asked) == 0 || t.read != 0 && now-t.read < t.pause {
		return
	}
	switch {
	case t.pause == 0 || now-t.read >= int64(readAnew):
		t.pause = int64(readEvery)
	case !t.failed:
		t.pause = min(2*t.pause, int64(readRarely))
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
func (l *layout) owner(address uint64) string {
	i := last(l.owners, address, func(f function) uint64 { return f.start })
	if i < 0 || address >= l.owners[i].end {
		return ""
	}
	return l.owners[i].name
}

// placed reports whether an address lies where code was when the table was read. What was loaded since into the place
// of something else, as one module into another's, is taken for that until the table is read for another reason: to ask
// for each such address would be to read it for every stack that is new.
func (l *layout) placed(address uint64) bool {
	i := last(l.extents, address, func(e extent) uint64 { return e.start })
	return i >= 0 && address < l.extents[i].end
}

// last is the index of the last of them that begins at an address or before; -1 if none does.
func last[T any](of []T, address uint64, start func(T) uint64) int {
	i, found := slices.BinarySearchFunc(of, address, func(t T, a uint64) int { return cmp.Compare(start(t), a) })
	if !found {
		i--
	}
	return i
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
	got.extents = extentsOf(starts)
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

// extentsOf are where functions begin with less than a page from one to the next: between two modules there is
// more, and room for another. So the end of a function that is longer lies in none, and is asked for.
func extentsOf(starts []uint64) (all []extent) {
	const page = 4096
	for _, at := range starts {
		if n := len(all); n > 0 && at <= all[n-1].end {
			all[n-1].end = at + page
			continue
		}
		all = append(all, extent{at, at + page})
	}
	return slices.Clip(all)
}

// functionsUsual is how many functions a kernel has with room to spare: 90,000 on a Debian.
const functionsUsual = 1 << 17

// symbol takes one line of the table apart: address, kind, name up to a dot, perhaps the module. False
// for what is no function, and for zeros: we may not know (kptr_restrict). It is called 100,000 times.
func symbol(line []byte) (at uint64, name []byte, ok bool) {
	digits := bytes.IndexByte(line, ' ')
	if digits < 1 || digits > 16 || len(line) < digits+3 || line[digits+2] != ' ' {
		return 0, nil, false
	}
	switch line[digits+1] {
	case 't', 'T', 'w', 'W':
	default:
		return 0, nil, false
	}
	for _, c := range line[:digits] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		default:
			return 0, nil, false
		}
		at = at<<4 | uint64(c)
	}
	name = line[digits+3:]
	for i, c := range name {
		if c == '\t' || c == '.' {
			name = name[:i]
			break
		}
	}
	return at, name, at != 0
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
			if len(function) >= len(p) && function[0] == p[0] && string(function[:len(p)]) == p { // of each of 100,000 names: nothing is copied
				return owners[i].lock
			}
		}
	}
	return ""
}
