package etw

import (
	"fmt"
)

// What is the kind of a process record.
type What uint8

// Kinds of process records.
const (
	Start What = 1 + iota
	End
	// Present means that the process ran before the session, or when state was requested.
	Present
	// Remains means that the process ran at the session's end.
	Remains
	// Defunct means that the process has exited, but a handle is open.
	Defunct
)

func (w What) String() string {
	return [...]string{"nothing", "start", "end", "present", "remains", "defunct"}[min(w, Defunct)]
}

// Process is one record. Fields that its provider lacks are zero.
type Process struct {
	What        What
	Provider    GUID
	Version     uint8
	Time        int64
	PID, Parent uint32
	// Created is a FILETIME; only KernelProcess has it.
	Created int64
	// Code is the exit code; 259 from the system logger means running.
	Code uint32
	// Image is a kernel path in Kernel-Process starts, its first 14 characters in ends, else a file name.
	Image       string
	CommandLine string
}

// Decoder decodes process records. It counts Unknown versions and Malformed (too short) ones, by provider, kind and
// version.
type Decoder struct {
	Unknown, Malformed map[string]uint64
}

// Decode returns false for other and undecodable records.
func (d *Decoder) Decode(r *Record) (Process, bool) {
	p := Process{What: kindOf(r), Provider: r.Provider, Version: r.Version, Time: r.Time}
	if p.What == 0 {
		return Process{}, false
	}
	from := &payload{b: r.Payload, pointer: r.Pointer}
	name, decode := "system logger", systemProcess
	if r.Provider == KernelProcess {
		name, decode = "Kernel-Process", kernelProcess
	}
	counter := &d.Unknown
	if decode(&p, from) {
		if !from.short {
			return p, true
		}
		counter = &d.Malformed
	}
	count(counter, fmt.Sprintf("%s %s v%d", name, p.What, p.Version))
	return Process{}, false
}

func count(m *map[string]uint64, key string) {
	if *m == nil {
		*m = map[string]uint64{}
	}
	(*m)[key]++
}

// kindOf follows the provider's manifest, and Process_TypeGroup1 of wmicore.mof.
func kindOf(r *Record) What {
	switch r.Provider {
	case KernelProcess:
		return map[uint16]What{1: Start, 2: End, 15: Present}[r.ID]
	case SystemProcess:
		return map[uint8]What{1: Start, 2: End, 3: Present, 4: Remains, 39: Defunct}[r.Opcode]
	}
	return 0
}

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

// kernelStart decodes versions 0 to 2, without the file data behind the image.
func kernelStart(p *Process, from *payload, flags bool) {
	p.PID, p.Created, p.Parent = from.u32(), int64(from.u64()), from.u32()
	from.u32() // session
	if flags {
		from.u32()
	}
	p.Image = from.wide()
}

// kernelStartNumbered decodes versions 3 to 5: a number follows each PID, and the privileges precede the image.
func kernelStartNumbered(p *Process, from *payload) {
	p.PID = from.u32()
	from.u64()
	p.Created, p.Parent = int64(from.u64()), from.u32()
	from.take(8 + 4 + 4 + 4 + 4) // number, session, flags, elevation type, elevated
	from.sid()                   // mandatory label
	p.Image = from.wide()
}

func kernelEnd(p *Process, from *payload) {
	p.PID = from.u32()
	if p.Version >= 2 {
		from.u64()
	}
	p.Created = int64(from.u64())
	from.u64() // end, as a FILETIME
	p.Code = from.u32()
	from.take(4 + 4 + 8 + 8) // elevation type, handles, committed memory now and maximum
	if p.Version >= 1 {
		from.take(8 + 4*4 + 4) // CPU cycles; reads, writes, and their KB; page faults
	}
	p.Image = from.ansi()
}

func systemProcess(p *Process, from *payload) bool {
	if p.Version > 5 {
		return false
	}
	if p.Version == 0 {
		p.PID, p.Parent = uint32(from.address()), uint32(from.address())
	} else {
		from.address() // process's key
		p.PID, p.Parent = from.u32(), from.u32()
		from.u32() // session
		p.Code = from.u32()
	}
	if p.Version >= 3 {
		from.address() // page directory
	}
	if p.Version >= 4 {
		from.u32()
	}
	from.user()
	p.Image = from.ansi()
	if p.Version >= 2 {
		p.CommandLine = from.wide()
	}
	return true
}
