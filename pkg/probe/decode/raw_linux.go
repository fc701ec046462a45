package decode

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/text"
)

// TimeOf returns a record's time in monotonic ns.
func TimeOf(raw []byte) int64 {
	at := unsafe.Offsetof(kernel.LifeExitEvent{}.H.Time)
	if uintptr(len(raw)) < at+8 {
		return 0
	}
	return int64(binary.NativeEndian.Uint64(raw[at:]))
}

// wire accepts records cut after least bytes, and returns how many follow.
func wire[T any](w *T, raw []byte, least uintptr) (more int, err error) {
	if uintptr(len(raw)) < least {
		return 0, fmt.Errorf("%d bytes, want at least %d", len(raw), least)
	}
	return copy(unsafe.Slice((*byte)(unsafe.Pointer(w)), unsafe.Sizeof(*w)), raw) - int(least), nil
}

func namespace(cookie uint64, inum uint32) event.Namespace {
	var ns event.Namespace
	if inum != 0 {
		ns.Label = strconv.FormatUint(uint64(inum), 10)
		ns.Key = ns.Label
	}
	// Before Linux 5.12 the kernel side sends the inode number.
	if cookie != 0 {
		ns.Key = strconv.FormatUint(cookie, 10)
	}
	return ns
}

func first(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}

// Callers translates the kernel side's callers.
var Callers = map[kernel.LifeCaller]event.Caller{
	kernel.LifeCallerCALLER_RUNTIME:    event.CallerRuntime,
	kernel.LifeCallerCALLER_AGENT:      event.CallerAgent,
	kernel.LifeCallerCALLER_HOST:       event.CallerHost,
	kernel.LifeCallerCALLER_PRIVILEGED: event.CallerPrivileged,
	kernel.LifeCallerCALLER_ROOTLESS:   event.CallerRootless,
}

func errno(ret int64) string {
	if ret >= 0 || ret < -4095 { // MAX_ERRNO (include/linux/err.h)
		return ""
	}
	if name := unix.ErrnoName(unix.Errno(-ret)); name != "" {
		return name
	}
	if ret <= -512 && ret >= -516 { // ERESTARTSYS etc. (include/linux/errno.h)
		return "EINTR"
	}
	return fmt.Sprintf("errno %d", -ret)
}

func comm(b []byte) string { return text.Clean(unix.ByteSliceToString(b), 16) }

// pathOf joins names to a path; the last name comes first.
func pathOf(names []byte) string {
	parts := procfs.Split(names)
	slices.Reverse(parts)
	return text.Clean("/"+strings.Join(parts, "/"), text.Bound)
}

// object redacts only what repeats the plugin's input.
func object(known *redact.Call, name string) string {
	if known.Repeats(name) {
		return known.Word(name)
	}
	return name
}
