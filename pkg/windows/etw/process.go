package etw

import (
	"fmt"
	"maps"
)

// What is the kind of a process record.
type What uint8

// Kinds of process records.
const (
	// Start means that it starts.
	Start What = 1 + iota
	// End means that it exited.
	End
	// Present means that it ran before the session, or when state was requested.
	Present
	// Remains means that it still runs at the session's end.
	Remains
	// Defunct means that it exited before but a handle to it is open.
	Defunct
)

func (w What) String() string {
	return [...]string{"nothing", "start", "end", "present", "remains", "defunct"}[min(w, Defunct)]
}

// Process is the content of one record about a process. Fields that its provider lacks are zero.
type Process struct {
	What What
	// Provider is KernelProcess or SystemProcess.
	Provider GUID
	Version  uint8
	// Time is the record's.
	Time        int64
	PID, Parent uint32
	// Creator is the caller of CreateProcess, which may have set another parent; in starts of KernelProcess.
	Creator uint32
	// Terminal is the terminal services session; 1<<32-1 for none.
	Terminal uint32
	// Created and Exited are FILETIMEs (100 ns since 1601, UTC) of KernelProcess.
	Created, Exited int64
	// Code is the exit code; from the system logger 259 means running.
	Code uint32
	// Cycles are CPU cycles; Faults are page faults that read from disk.
	Cycles uint64
	Faults uint32
	// Image is a kernel path in starts of KernelProcess, its first 14 characters in ends, else a file name.
	Image string
	// CommandLine and User ("S-1-5-18") are from the system logger.
	CommandLine, User string
	// Key identifies a running process; from the system logger.
	Key uint64
}

// Decoder decodes process records and counts undecodable ones.
type Decoder struct {
	unknown, malformed map[string]uint64
}

// Decode decodes a record; false if it is not about a process or not decodable.
func (d *Decoder) Decode(r *Record) (Process, bool) {
	var p Process
	var known bool
	from := &payload{b: r.Payload, pointer: r.Pointer}
	p.What, p.Provider, p.Version, p.Time = kindOf(r), r.Provider, r.Version, r.Time
	if p.What == 0 {
		return Process{}, false
	}
	name := "system logger"
	if r.Provider == KernelProcess {
		name, known = "Kernel-Process", kernelProcess(&p, from)
		if p.What == Start {
			p.Creator = r.PID
		}
	} else {
		known = systemProcess(&p, from)
	}
	switch {
	case !known:
		count(&d.unknown, fmt.Sprintf("%s %s v%d", name, p.What, p.Version))
	case from.short:
		count(&d.malformed, fmt.Sprintf("%s %s v%d", name, p.What, p.Version))
	default:
		return p, true
	}
	return Process{}, false
}

// Unknown counts records of unsupported versions, by provider, kind and version.
func (d *Decoder) Unknown() map[string]uint64 { return maps.Clone(d.unknown) }

// Malformed counts records that are too short for their version.
func (d *Decoder) Malformed() map[string]uint64 { return maps.Clone(d.malformed) }

func count(m *map[string]uint64, key string) {
	if *m == nil {
		*m = map[string]uint64{}
	}
	(*m)[key]++
}

// kindOf returns a record's kind by its number: the provider's manifest, and Process_TypeGroup1 of wmicore.mof.
func kindOf(r *Record) What {
	switch r.Provider {
	case KernelProcess:
		return map[uint16]What{1: Start, 2: End, 15: Present}[r.ID]
	case SystemProcess:
		return map[uint8]What{1: Start, 2: End, 3: Present, 4: Remains, 39: Defunct}[r.Opcode]
	}
	return 0
}

// kernelProcess decodes a Microsoft-Windows-Kernel-Process record; false for an unsupported version.
func kernelProcess(p *Process, from *payload) bool {
	switch {
	case p.What == End && p.Version <= 2:
		kernelEnd(p, from)
	case p.What == Start && p.Version <= 2:
		kernelStart(p, from, p.Version >= 1)
	case p.What == Present && p.Version == 0:
		kernelStart(p, from, true)
	case p.What == Start && p.Version <= 5, p.What == Present && p.Version == 1:
		kernelStartNumbered(p, from)
	default:
		return false
	}
	return true
}

// kernelStart decodes starts of versions 0 to 2, without the file data behind the image.
func kernelStart(p *Process, from *payload, flags bool) {
	p.PID, p.Created, p.Parent, p.Terminal = from.u32(), int64(from.u64()), from.u32(), from.u32()
	if flags {
		from.u32()
	}
	p.Image = from.wide()
}

// kernelStartNumbered decodes starts of versions 3 to 5: a number follows each PID, and the privileges precede the
// image.
func kernelStartNumbered(p *Process, from *payload) {
	p.PID = from.u32()
	from.u64()
	p.Created, p.Parent = int64(from.u64()), from.u32()
	from.u64()
	p.Terminal = from.u32()
	from.take(4 + 4 + 4) // flags, elevation type, elevated
	from.sid()           // the mandatory label
	p.Image = from.wide()
}

func kernelEnd(p *Process, from *payload) {
	p.PID = from.u32()
	if p.Version >= 2 {
		from.u64()
	}
	p.Created, p.Exited, p.Code = int64(from.u64()), int64(from.u64()), from.u32()
	from.take(4 + 4 + 8 + 8) // elevation type, handles, committed memory now and maximum
	if p.Version >= 1 {
		p.Cycles = from.u64()
		from.take(4 * 4) // reads, writes, and their KB
		p.Faults = from.u32()
	}
	p.Image = from.ansi()
}

// systemProcess decodes a system logger's record; false for an unsupported version.
func systemProcess(p *Process, from *payload) bool {
	if p.Version > 5 {
		return false
	}
	if p.Version == 0 {
		p.PID, p.Parent = uint32(from.address()), uint32(from.address())
	} else {
		p.Key = from.address() // the page directory in version 1
		p.PID, p.Parent, p.Terminal, p.Code = from.u32(), from.u32(), from.u32(), from.u32()
	}
	if p.Version == 1 {
		p.Key = 0
	}
	if p.Version >= 3 {
		from.address() // the page directory
	}
	if p.Version >= 4 {
		from.u32() // flags
	}
	p.User, p.Image = from.user(), from.ansi()
	if p.Version >= 2 {
		p.CommandLine = from.wide()
	}
	return true
}
