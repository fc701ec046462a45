// Package symbols names the kernel lock that a stack waits for.
package symbols

import (
	"io"
	"strings"
	"time"
)

// Table asks the kernel for functions' names. The zero Table knows none. It is for one goroutine.
type Table struct {
	kernel  asker
	known   map[uint64]string
	cleared int64 // when known was
}

type asker interface {
	name(address uint64) string
	io.Closer
}

const (
	maxSymbols = 4096
	// modules may change
	readAnew = 10 * time.Minute
)

// Open loads a BPF program (Linux 5.14; the tracepoints of locks need 5.19).
func Open() (*Table, error) {
	k, err := openKernel()
	if err != nil {
		return new(Table), err
	}
	return &Table{kernel: k, known: map[uint64]string{}}, nil
}

// Close unloads the program.
func (t *Table) Close() error {
	if t.kernel == nil {
		return nil
	}
	return t.kernel.Close()
}

// Lock names the lock that a stack (innermost first) waits for, else its first known caller. now is in monotonic ns.
func (t *Table) Lock(now int64, stack []uint64) (caller string) {
	for _, a := range stack {
		name := t.Name(now, a)
		if owner := ownerOf(name); owner != "" {
			return owner
		}
		if caller == "" && !waits(name) {
			caller = name
		}
	}
	return caller
}

// Name may return an empty string.
func (t *Table) Name(now int64, address uint64) string {
	if t.kernel == nil {
		return ""
	}
	if len(t.known) >= maxSymbols || now-t.cleared >= int64(readAnew) {
		clear(t.known)
		t.cleared = now
	}
	name, known := t.known[address]
	if !known {
		name = t.kernel.name(address)
		t.known[address] = name
	}
	return name
}

// waits reports whether a function is part of waiting for a lock, or of tracing that.
func waits(function string) bool {
	return strings.Contains(function, "mutex") || strings.Contains(function, "contention") || strings.HasPrefix(function, "bpf_")
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

func ownerOf(function string) string {
	for _, o := range owners {
		for _, prefix := range o.prefixes {
			if strings.HasPrefix(function, prefix) {
				return o.lock
			}
		}
	}
	return ""
}
