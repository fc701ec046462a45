// Package symbols names the kernel lock that a stack waits for.
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

// Table asks the kernel for names, or reads /proc/kallsyms, and keeps only functions that identify a lock: all
// 100,000 would take megabytes. For others, and new code, a goroutine rereads it: 70 ms of CPU, half a second under
// load; the next such wait has a name. The zero Table knows none. It is for one goroutine.
type Table struct {
	kernel asker
	file   io.ReadSeeker
	layout
	known map[uint64]string
	// addresses for the next read; answer is nil while none runs
	asked  []uint64
	answer chan reading
	read   int64 // start of the last read
	pause  int64 // until the next read
	failed bool  // incomplete last read
}

type asker interface {
	name(address uint64) string
	io.Closer
}

type layout struct {
	// functions that identify a lock, sorted by address
	owners []function
	// ranges of code; an address in a range, but in no owner, identifies no lock
	extents []extent
}

type function struct {
	start, end uint64
	name       string
}

type extent struct{ start, end uint64 }

type reading struct {
	layout
	names map[uint64]string
	whole bool
}

const (
	// The interval doubles from readEvery to readRarely: 1.5 % of a CPU, later 0.1 %. It restarts readAnew after the
	// last read.
	readEvery, readRarely, readAnew = 5 * time.Second, 80 * time.Second, 10 * time.Minute
	// bounds of the known addresses, and of those of one read
	maxSymbols, maxAsked = 4096, 256
)

func newTable(file io.ReadSeeker) *Table {
	return &Table{file: file, known: map[uint64]string{}, layout: lookUp(file, nil).layout}
}

// Close waits for a running read.
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

// Lock names the lock that a stack (innermost first) waits for, else its first known caller. now is in monotonic ns.
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
		if !t.placed(a) && !t.ask(a) {
			whole = false
		}
	}
	if !whole {
		return ""
	}
	return t.caller(stack)
}

func (t *Table) told(now int64, stack []uint64) (caller string) {
	if len(t.known) >= maxSymbols || now-t.read >= int64(readAnew) { // modules may change
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

func (t *Table) caller(stack []uint64) string {
	for i, a := range stack {
		if !t.ask(a) {
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

// waits reports whether a function is part of waiting for a lock, or of tracing that.
func waits(function string) bool {
	return strings.Contains(function, "mutex") || strings.Contains(function, "contention") || strings.HasPrefix(function, "bpf_")
}

func (t *Table) ask(address uint64) bool {
	if _, known := t.known[address]; known || len(t.extents) == 0 { // all hidden (kptr_restrict)
		return true
	}
	if len(t.asked) < maxAsked && !slices.Contains(t.asked, address) {
		t.asked = append(t.asked, address)
	}
	return false
}

func (t *Table) take(now int64) {
	select {
	case got := <-t.answer:
		t.answer = nil
		if t.failed = !got.whole; t.failed {
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

func (t *Table) wait() {
	if t.answer != nil {
		<-t.answer
		t.answer = nil
	}
}

func (l *layout) owner(address uint64) string {
	i := last(l.owners, address, func(f function) uint64 { return f.start })
	if i < 0 || address >= l.owners[i].end {
		return ""
	}
	return l.owners[i].name
}

// placed reports whether an address was code at the last read. A module that replaced another is mistaken until the
// next one: looking up such addresses would mean a read for every new stack.
func (l *layout) placed(address uint64) bool {
	i := last(l.extents, address, func(e extent) uint64 { return e.start })
	return i >= 0 && address < l.extents[i].end
}

// last returns the last index that starts at or before address; -1 if none does.
func last[T any](of []T, address uint64, start func(T) uint64) int {
	i, found := slices.BinarySearchFunc(of, address, func(t T, a uint64) int { return cmp.Compare(start(t), a) })
	if !found {
		i--
	}
	return i
}

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

// extentsOf joins functions that are less than a page apart, since modules are further apart.
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

// functionsUsual suffices for Debian, which has 90,000 functions.
const functionsUsual = 1 << 17

// symbol parses address, kind, and name up to a dot; false for data and hidden addresses (kptr_restrict). It runs
// 100,000 times.
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

// owners are functions that identify a lock by prefix, because locks have no names.
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

func ownerOf(function []byte) string {
	for i := range owners {
		for _, p := range owners[i].prefixes {
			if len(function) >= len(p) && function[0] == p[0] && string(function[:len(p)]) == p {
				return owners[i].lock
			}
		}
	}
	return ""
}
