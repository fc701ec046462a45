// Package kernel is the kernel side of the probe: BPF programs (bpf/), their attachment and tables.
package kernel

import (
	"fmt"
	"strconv"
	"strings"
	"structs"

	"github.com/cniscope/cniscope/pkg/event"
)

// Key is struct task_key of bpf/wire.h. Pid is in our namespace.
type Key = struct {
	_     structs.HostLayout
	Start uint64 // boot-time ns
	Tgid  uint32 // in the initial PID namespace
	Pid   uint32
}

// ProcessOf returns a key in events.
func ProcessOf(k Key) event.Process {
	var b [len("4294967295@18446744073709551615")]byte
	return event.Process(strconv.AppendUint(append(strconv.AppendUint(b[:0], uint64(k.Tgid), 10), '@'), k.Start, 10))
}

// KeyOf is the inverse of ProcessOf.
func KeyOf(process event.Process, pid uint32) Key {
	number, start, _ := strings.Cut(string(process), "@")
	n, _ := strconv.ParseUint(number, 10, 32)
	at, _ := strconv.ParseUint(start, 10, 64)
	return Key{Tgid: uint32(n), Start: at, Pid: pid}
}

// UnsupportedError names what the machine lacks, and the remedy.
type UnsupportedError struct {
	Need   string
	Remedy string
	// may be nil
	Err error
}

func (e *UnsupportedError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("kernel probe: %s; %s", e.Need, e.Remedy)
	}
	return fmt.Sprintf("kernel probe: %s: %v; %s", e.Need, e.Err, e.Remedy)
}

func (e *UnsupportedError) Unwrap() error { return e.Err }
