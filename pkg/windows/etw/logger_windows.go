//go:build amd64 || arm64

package etw

import (
	"errors"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/cniscope/cniscope/pkg/clock"
)

// bufferKB is the size of a session's buffer: a start with a long command line takes 2 KB of it.
const bufferKB = 64

// logger is one session of Windows, and whoever reads it. Windows has its address from open to close.
type logger struct {
	name   string
	handle uint64 // of the session, to control it
	trace  uint64 // of the reader; 0: there is none
	// take gets each record; it is called by a thread of ProcessTrace, and what it got is valid until it returns.
	take func(*Record)
	pin  runtime.Pinner
	// events and buffers were lost by the last time that Windows was asked.
	events, buffers uint32
}

// start starts a session of that name. One of the same name is stopped if replace says that a predecessor left it
// behind; else it is a reason for refusal.
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
		again := *p // Windows writes into it
		return call(startTrace, uintptr(unsafe.Pointer(&l.handle)), uintptr(unsafe.Pointer(wide)), uintptr(unsafe.Pointer(&again)))
	}
	err = begin()
	if errors.Is(err, windows.ERROR_ALREADY_EXISTS) && replace {
		if err := call(controlTrace, 0, uintptr(unsafe.Pointer(wide)), uintptr(unsafe.Pointer(newProperties())), controlStop); err != nil {
			return nil, refused("ControlTrace "+name, err)
		}
		err = begin()
	}
	if err != nil {
		return nil, refused("StartTrace "+name, err)
	}
	return l, nil
}

// realTime has a session deliver every flush; enable are the flags of a system logger, 0 for another session.
func realTime(flush time.Duration, enable uint32) *properties {
	p := newProperties()
	p.mode, p.flushTimer, p.enable, p.fileOffset = modeRealTime|modeMSFlush, uint32(max(1, flush.Milliseconds())), enable, 0
	if enable != 0 {
		p.mode |= modeSystemLogger
	}
	return p
}

// enable has a provider send to the session.
func (l *logger) enable(provider GUID, level uint8, keywords uint64) error {
	err := call(enableTraceEx2, uintptr(l.handle), uintptr(unsafe.Pointer(&provider)), enableProvider, uintptr(level), uintptr(keywords), 0, 0, 0)
	if err != nil {
		return refused("EnableTraceEx2 "+l.name, err)
	}
	return nil
}

// open begins to read what the session delivers.
func (l *logger) open(take func(*Record)) error {
	name, err := windows.UTF16PtrFromString(l.name)
	if err != nil {
		return err
	}
	l.take = take
	l.pin.Pin(l)
	of := logfile{session: name, mode: processRealTime | processRaw | processRecords, record: callback(), context: unsafe.Pointer(l)}
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

// process delivers records until the session is stopped.
func (l *logger) process() error {
	return call(processTrace, uintptr(unsafe.Pointer(&l.trace)), 1, 0, 0)
}

// callback is called by Windows with each record. There is one for all sessions: callbacks are never freed.
var callback = sync.OnceValue(func() uintptr {
	return windows.NewCallback(func(r *eventRecord) uintptr {
		record := Record{
			Provider: r.provider, ID: r.id, Version: r.version, Opcode: r.opcode, Time: clock.FromCounter(r.time),
			PID: r.process, TID: r.thread, CPU: r.cpu, Pointer: 8,
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

// losses returns how many events and buffers were lost since it was called last.
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

// stop ends the session, and with it process.
func (l *logger) stop() error {
	return call(controlTrace, uintptr(l.handle), 0, uintptr(unsafe.Pointer(newProperties())), controlStop)
}

// close frees the reader. Windows may deliver until process returns.
func (l *logger) close() error {
	err := call(closeTrace, uintptr(l.trace))
	if errors.Is(err, errClosePending) {
		err = nil
	}
	l.pin.Unpin()
	return err
}

// isWine reports whether this is Wine, whose sessions start and never tell anything.
func isWine() bool {
	return windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil
}

// refused says why Windows did not do what was asked.
func refused(doing string, err error) error {
	why := RefusedOther
	switch {
	case isWine(), errors.Is(err, windows.ERROR_PROC_NOT_FOUND), errors.Is(err, windows.ERROR_CALL_NOT_IMPLEMENTED), errors.Is(err, windows.ERROR_NOT_SUPPORTED):
		why = RefusedUnsupported
	case errors.Is(err, windows.ERROR_ACCESS_DENIED), errors.Is(err, windows.ERROR_PRIVILEGE_NOT_HELD):
		why = RefusedPrivilege
	case errors.Is(err, windows.ERROR_ALREADY_EXISTS):
		why = RefusedTaken
	case errors.Is(err, windows.ERROR_NO_SYSTEM_RESOURCES):
		why = RefusedFull
	}
	return &RefusedError{Why: why, Doing: doing, Err: err}
}
