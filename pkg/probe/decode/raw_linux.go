package decode

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/text"
)

// TimeOf is when a record was made, in monotonic ns.
func TimeOf(raw []byte) int64 {
	at := unsafe.Offsetof(kernel.LifeExitEvent{}.H.Time)
	if uintptr(len(raw)) < at+8 {
		return 0
	}
	return int64(binary.NativeEndian.Uint64(raw[at:]))
}

// wire copies a record into the struct the kernel side wrote. A record may end anywhere behind its first least
// bytes; the rest of the struct is zero then.
func wire[T any](w *T, raw []byte, least uintptr) error {
	if uintptr(len(raw)) < least {
		return fmt.Errorf("%d bytes, want at least %d", len(raw), least)
	}
	all := unsafe.Slice((*byte)(unsafe.Pointer(w)), unsafe.Sizeof(*w))
	clear(all[copy(all, raw):])
	return nil
}

func namespace(cookie uint64, inum uint32) event.Namespace {
	var ns event.Namespace
	if inum != 0 {
		ns.Label = strconv.FormatUint(uint64(inum), 10)
		ns.Key = ns.Label
	}
	// Kernels before 5.12 have no cookie, and the kernel side takes the inode number for it.
	if cookie != 0 {
		ns.Key = strconv.FormatUint(cookie, 10)
	}
	return ns
}

// status splits what wait(2) reports.
func status(s uint32) (code uint32, signal string) {
	if n := s & 0x7f; n != 0 {
		if name := unix.SignalName(unix.Signal(n)); name != "" {
			return 0, name
		}
		return 0, fmt.Sprintf("signal %d", n)
	}
	return s >> 8 & 0xff, ""
}

// split returns the NUL-terminated strings of b.
func split(b []byte) []string {
	b = bytes.TrimSuffix(b, []byte{0})
	if len(b) == 0 {
		return nil
	}
	return strings.Split(string(b), "\x00")
}

func first(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}

// Callers name why the kernel side believes a run; empty where it does not.
var Callers = map[kernel.LifeCaller]event.Caller{
	kernel.LifeCallerCALLER_RUNTIME:    event.CallerRuntime,
	kernel.LifeCallerCALLER_AGENT:      event.CallerAgent,
	kernel.LifeCallerCALLER_HOST:       event.CallerHost,
	kernel.LifeCallerCALLER_PRIVILEGED: event.CallerPrivileged,
	kernel.LifeCallerCALLER_ROOTLESS:   event.CallerRootless,
}

// errno names the error a system call returned; empty if it returned none.
func errno(ret int64) string {
	if ret >= 0 || ret < -4095 { // MAX_ERRNO (include/linux/err.h)
		return ""
	}
	if name := unix.ErrnoName(unix.Errno(-ret)); name != "" {
		return name
	}
	if ret <= -512 && ret >= -516 { // ERESTARTSYS and its like (include/linux/errno.h)
		return "EINTR"
	}
	return fmt.Sprintf("errno %d", -ret)
}

// comm is what the kernel calls a program.
func comm(b []byte) string { return text.Clean(unix.ByteSliceToString(b), 16) }

// pathOf joins the names on the way up from a file.
func pathOf(names []byte) string {
	parts := split(names)
	slices.Reverse(parts)
	return text.Clean("/"+strings.Join(parts, "/"), text.Bound)
}

// object is the name of one of the kernel's, which is what it is called by, unless it repeats
// what the plugin was told.
func object(known *redact.Call, name string) string {
	if known.Repeats(name) {
		return known.Word(name)
	}
	return name
}
