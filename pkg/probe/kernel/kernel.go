// Package kernel is the kernel side of the probe: the BPF programs (bpf/), how they are loaded,
// attached and detached, and their tables. It owns everything in the kernel that has to be put
// away again, and decides nothing: who is followed and when system calls are looked into is
// asked of it by the reader, who is believed is decided by the programs.
//
// A hook is a line of attach_linux.go and its program in bpf/. What a program sends
// is described in bpf/wire.h; its Go types are generated from there.
package kernel

import (
	"fmt"
	"strconv"
	"strings"
	"structs"

	"github.com/cniscope/cniscope/pkg/event"
)

// Key is struct task_key of bpf/wire.h, in Go types of both objects: a process by its number and
// when it began. Pid is its number in cniscope's PID namespace.
type Key = struct {
	_     structs.HostLayout
	Start uint64 // boot-time ns
	Tgid  uint32 // as the initial PID namespace counts
	Pid   uint32
}

// ProcessOf is the event's name of a process, and KeyOf takes that apart again.
func ProcessOf(k Key) event.Process {
	var b [len("4294967295@18446744073709551615")]byte
	return event.Process(strconv.AppendUint(append(strconv.AppendUint(b[:0], uint64(k.Tgid), 10), '@'), k.Start, 10))
}

// KeyOf is described at ProcessOf.
func KeyOf(process event.Process, pid uint32) Key {
	number, start, _ := strings.Cut(string(process), "@")
	n, _ := strconv.ParseUint(number, 10, 32)
	at, _ := strconv.ParseUint(start, 10, 64)
	return Key{Tgid: uint32(n), Start: at, Pid: pid}
}

// UnsupportedError says that this machine cannot do what the probe needs, and what would help.
type UnsupportedError struct {
	// Need is what is missing.
	Need string
	// Remedy is what to do about it.
	Remedy string
	// Err is the cause; may be nil.
	Err error
}

func (e *UnsupportedError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("kernel probe: %s; %s", e.Need, e.Remedy)
	}
	return fmt.Sprintf("kernel probe: %s: %v; %s", e.Need, e.Err, e.Remedy)
}

func (e *UnsupportedError) Unwrap() error { return e.Err }
