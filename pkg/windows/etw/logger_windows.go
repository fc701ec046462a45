package etw

import (
	"errors"
	"io/fs"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/cniscope/cniscope/pkg/clock"
)

// bufferKB suffices for starts with a long command line, which need 2 KB.
const bufferKB = 64

// logger is one session and its reader. Windows holds its address from open to close.
type logger struct {
	name   string
	handle uint64 // handle of the session
	trace  uint64 // handle of the reader; 0 without a reader
	// take runs on a thread of ProcessTrace; the record is valid until it returns.
	take func(*Record)
	pin  runtime.Pinner
	// Losses up to the last query.
	events, buffers uint32
}

// With replace, start stops an existing session of that name.
func start(name string, p *properties, replace bool) (*logger, error) {
	p.bufferKB, p.clock = bufferKB, clockCounter
	p.buffersMin = uint32(2 * runtime.NumCPU())
	p.buffersMax = p.buffersMin + 32
	wide, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	l := &logger{name: name}
	begin := func() error {
		again := *p // Windows modifies it
		return call(startTrace, uintptr(unsafe.Pointer(&l.handle)), uintptr(unsafe.Pointer(wide)),
			uintptr(unsafe.Pointer(&again)))
	}
	err = begin()
	if errors.Is(err, windows.ERROR_ALREADY_EXISTS) && replace {
		if err := call(controlTrace, 0, uintptr(unsafe.Pointer(wide)), uintptr(unsafe.Pointer(newProperties())),
			controlStop); err != nil {
			return nil, refused("ControlTrace "+name, err)
		}
		err = begin()
	}
	if err != nil {
		return nil, refused("StartTrace "+name, err)
	}
	return l, nil
}

// realTime configures a session; enable holds a system logger's flags, else 0.
func realTime(enable uint32) *properties {
	p := newProperties()
	p.mode, p.flushTimer, p.enable, p.fileOffset = modeRealTime|modeMSFlush, uint32(flushEvery.Milliseconds()), enable, 0
	if enable != 0 {
		p.mode |= modeSystemLogger
	}
	return p
}

func (l *logger) enable(provider GUID, level uint8, keywords uint64) error {
	err := call(enableTraceEx2, uintptr(l.handle), uintptr(unsafe.Pointer(&provider)), enableProvider, uintptr(level),
		uintptr(keywords), 0, 0, 0)
	if err != nil {
		return refused("EnableTraceEx2 "+l.name, err)
	}
	return nil
}

func (l *logger) open(take func(*Record)) error {
	name, err := windows.UTF16PtrFromString(l.name)
	if err != nil {
		return err
	}
	l.take = take
	l.pin.Pin(l)
	of := logfile{
		session: name, mode: processRealTime | processRaw | processRecords, record: callback(),
		context: unsafe.Pointer(l),
	}
	if err := openTrace.Find(); err != nil {
		return refused("OpenTrace "+l.name, err)
	}
	trace, _, err := openTrace.Call(uintptr(unsafe.Pointer(&of)))
	if uint64(trace) == invalidTrace {
		l.pin.Unpin()
		return refused("OpenTrace "+l.name, err)
	}
	l.trace = uint64(trace)
	return nil
}

func (l *logger) process() error {
	return call(processTrace, uintptr(unsafe.Pointer(&l.trace)), 1, 0, 0)
}

// callback serves all sessions, because Windows callbacks are never freed.
var callback = sync.OnceValue(func() uintptr {
	return windows.NewCallback(func(r *eventRecord) uintptr {
		record := Record{
			Provider: r.provider, ID: r.id, Version: r.version, Opcode: r.opcode, Time: clock.FromCounter(r.time), Pointer: 8,
		}
		if r.flags&header32Bit != 0 {
			record.Pointer = 4
		}
		if r.payload != nil {
			record.Payload = unsafe.Slice(r.payload, r.payloadLength)
		}
		r.context.take(&record)
		return 0
	})
})

// losses since its last call.
func (l *logger) losses() (events, buffers uint64, err error) {
	p := newProperties()
	if err := call(controlTrace, uintptr(l.handle), 0, uintptr(unsafe.Pointer(p)), controlQuery); err != nil {
		return 0, 0, err
	}
	lost := p.realTimeLost + p.logBuffersLost
	events, buffers = uint64(p.eventsLost-l.events), uint64(lost-l.buffers) // modulo 2^32
	l.events, l.buffers = p.eventsLost, lost
	return events, buffers, nil
}

func (l *logger) stop() error {
	return call(controlTrace, uintptr(l.handle), 0, uintptr(unsafe.Pointer(newProperties())), controlStop)
}

// close frees the reader; Windows may deliver records until process returns.
func (l *logger) close() error {
	err := call(closeTrace, uintptr(l.trace))
	if errors.Is(err, errClosePending) {
		err = nil
	}
	l.pin.Unpin()
	return err
}

// Wine reports Wine, whose sessions deliver nothing.
var Wine = sync.OnceValue(func() bool {
	return windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil
})

func refused(doing string, err error) error {
	remedy := "please report it"
	switch {
	case Wine(), errors.Is(err, windows.ERROR_PROC_NOT_FOUND), errors.Is(err, errors.ErrUnsupported):
		remedy = remedyUnsupported
	case errors.Is(err, fs.ErrPermission), errors.Is(err, windows.ERROR_PRIVILEGE_NOT_HELD):
		remedy = "run cniscope as SYSTEM or as an administrator"
	case errors.Is(err, windows.ERROR_ALREADY_EXISTS):
		remedy = "another program already records: `logman query -ets` lists the sessions, `logman stop NAME -ets` stops one"
	case errors.Is(err, windows.ERROR_NO_SYSTEM_RESOURCES): // 64 sessions, 8 system loggers
		remedy = "stop an unused session: `logman query -ets` lists all, `logman stop NAME -ets` stops a session"
	}
	return &RefusedError{Doing: doing, Remedy: remedy, Err: err}
}
