package probe

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/text"
)

// variableMax is VAR_MAX of bpf/wire.h, less the NUL: a value that long has lost its
// end.
const variableMax = 511

// decoder turns what the kernel side sends into events. Raw bytes end here: what
// leaves is named, bounded and sanitised.
type decoder struct {
	arguments arguments.Mode
	inside    *interior
}

// events returns what one ring buffer record says, in order. It fails on a record that
// this version of the kernel side cannot have written.
func (d decoder) events(raw []byte) ([]event.Event, error) {
	if len(raw) > 0 && kernel.LifeKind(raw[0]) == kernel.LifeKindKIND_CALL {
		return d.inside.decode(raw)
	}
	e, err := d.decode(raw)
	if err != nil {
		return nil, err
	}
	return append(d.inside.note(e), e), nil
}

// decode returns the event in a record of the life of processes.
func (d decoder) decode(raw []byte) (event.Event, error) {
	if len(raw) == 0 {
		return event.Event{}, fmt.Errorf("empty record")
	}
	switch kernel.LifeKind(raw[0]) {
	case kernel.LifeKindKIND_FORK:
		var w kernel.LifeForkEvent
		if err := wire(&w, raw, unsafe.Sizeof(kernel.LifeForkEvent{})); err != nil {
			return event.Event{}, fmt.Errorf("fork: %w", err)
		}
		return event.Event{Time: int64(w.H.Time), Body: &event.Fork{
			Process: kernel.ProcessOf(w.H.Task), Parent: kernel.ProcessOf(w.Parent), PID: w.H.Task.Pid,
		}}, nil
	case kernel.LifeKindKIND_EXEC:
		var w kernel.LifeExecEvent
		if err := wire(&w, raw, unsafe.Offsetof(kernel.LifeExecEvent{}.Data)); err != nil {
			return event.Event{}, fmt.Errorf("exec: %w", err)
		}
		return d.exec(&w)
	case kernel.LifeKindKIND_EXIT:
		var w kernel.LifeExitEvent
		if err := wire(&w, raw, unsafe.Sizeof(kernel.LifeExitEvent{})); err != nil {
			return event.Event{}, fmt.Errorf("exit: %w", err)
		}
		code, signal := status(uint32(w.Status))
		return event.Event{Time: int64(w.H.Time), Body: &event.Exit{
			Process: kernel.ProcessOf(w.H.Task),
			Code:    code,
			Signal:  signal,
			Used:    event.Usage{CPU: int64(w.Cpu), RunDelay: int64(w.Delay)},
			NetNS:   namespace(w.NetnsCookie, w.NetnsInum),
		}}, nil
	}
	return event.Event{}, fmt.Errorf("unknown kind %d", raw[0])
}

func (d decoder) exec(w *kernel.LifeExecEvent) (event.Event, error) {
	files, args, env := int(w.FileLen), int(w.FileLen)+int(w.ArgsLen), int(w.FileLen)+int(w.ArgsLen)+int(w.EnvLen)
	if env > len(w.Data) {
		return event.Event{}, fmt.Errorf("exec: %d bytes of text in a record with room for %d", env, len(w.Data))
	}
	flag := func(f kernel.LifeFlag) bool { return w.H.Flags&uint8(f) != 0 }
	im := image{
		file:      first(split(w.Data[:files])),
		args:      split(w.Data[files:args]),
		script:    flag(kernel.LifeFlagFLAG_SCRIPT),
		truncated: flag(kernel.LifeFlagFLAG_ARGS_CUT | kernel.LifeFlagFLAG_ENV_CUT),
	}
	if flag(kernel.LifeFlagFLAG_TRUSTED) {
		im.env = split(w.Data[args:env])
	}
	e := &event.Exec{
		Process:   kernel.ProcessOf(w.H.Task),
		Parent:    kernel.ProcessOf(w.Parent),
		PID:       w.H.Task.Pid,
		ParentPID: w.Parent.Pid,
		Started:   int64(w.Started),
		Root:      flag(kernel.LifeFlagFLAG_ROOT),
		NetNS:     namespace(w.NetnsCookie, w.NetnsInum),
		Used:      event.Usage{CPU: int64(w.Cpu), RunDelay: int64(w.Delay)},
	}
	d.inside.opens(e.Process, e.Parent, pipes{in: w.StdinIno, out: w.StdoutIno})
	e.Stdin = event.NoStdin
	if e.Root {
		e.Caller = callerOf(kernel.LifeCaller(w.Caller))
	}
	if w.StdinIno != 0 {
		e.Stdin = fmt.Sprintf("%d:%d", w.H.StdinDev, w.StdinIno)
	}
	known := d.inside.known(e.Process)
	im.describe(e, d.arguments, known)
	if p := d.inside.processes[e.Process]; e.InPath {
		p.environ, p.arguments = im.env, im.args[min(1, len(im.args)):]
	}
	if up := d.inside.processes[e.Parent]; up != nil && up.depth > 0 {
		e.Mentions = d.inside.sandboxes.Mentions([]event.Namespace{e.NetNS}, nil, im.args...)
	}
	return event.Event{Time: int64(w.H.Time), Body: e}, nil
}

// image is what is known of a program, raw: from the kernel side or from /proc.
type image struct {
	file      string
	args, env []string
	script    bool
	truncated bool
}

// describe puts the image into e, sanitised: nothing that the call's plugins were told is in it.
func (im image) describe(e *event.Exec, mode arguments.Mode, known *redact.Call) {
	args := im.args
	called := baseName(first(args))
	if im.script || called == "" {
		// The kernel put the interpreter (and at most one argument of the #! line)
		// in front of the script's own arguments: binfmt_script(5).
		called = baseName(im.file)
		if i := slices.Index(args, im.file); i > 0 {
			args = args[i:]
		}
	}
	vars, cut := parseEnvironment(im.env)
	folder, file := path.Split(im.file)
	if !arguments.IsTool(called) && called != file && !known.Harmless(called) {
		called = file // what a program is called may be any text, its file not
	}
	e.Name = strings.TrimSuffix(called, ".exe")
	if slices.Contains(vars.folders(), path.Clean(folder)) {
		e.InPath, e.Call = true, vars.call() // where it lies and what it is called is its type
	} else {
		clean := known.Path(im.file) // all of it: a secret may have slashes
		e.Name, folder, file = known.Program(e.Name), clean[:strings.LastIndexByte(clean, '/')+1], known.Program(file)
	}
	e.File, e.Name = text.Clean(folder+file, text.Bound), text.Clean(e.Name, 64)
	if len(args) > 0 {
		e.Args, e.Hidden = arguments.Sanitise(known, called, args[1:], mode)
	}
	e.Truncated = im.truncated || cut
}

// timeOf is when a record was made, in monotonic ns.
func timeOf(raw []byte) int64 {
	at := unsafe.Offsetof(kernel.LifeExitEvent{}.H.Time)
	if uintptr(len(raw)) < at+8 {
		return 0
	}
	return int64(binary.NativeEndian.Uint64(raw[at:]))
}

// wire copies a record into the struct the kernel side wrote, which is zero before. A
// record may end anywhere behind its first least bytes; the rest of the struct stays zero
// then.
func wire[T any](w *T, raw []byte, least uintptr) error {
	if uintptr(len(raw)) < least {
		return fmt.Errorf("%d bytes, want at least %d", len(raw), least)
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(w)), unsafe.Sizeof(*w)), raw)
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

func baseName(file string) string {
	return file[strings.LastIndexByte(file, '/')+1:]
}
