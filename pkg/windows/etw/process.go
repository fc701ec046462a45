package etw

import (
	"fmt"
	"maps"
)

// What is what a Process tells.
type What uint8

// What is told of processes.
const (
	// Start: it begins.
	Start What = 1 + iota
	// End: it is over.
	End
	// Present: it ran already when the session began, or was asked to say so.
	Present
	// Remains: it still runs when the session ends.
	Remains
	// Defunct: it was over before, and somebody still has a handle of it.
	Defunct
)

func (w What) String() string {
	return [...]string{"nothing", "start", "end", "present", "remains", "defunct"}[min(w, Defunct)]
}

// Process is what one record tells of a process. Fields that its provider does not tell are zero.
type Process struct {
	What What
	// Provider is KernelProcess or SystemProcess.
	Provider GUID
	Version  uint8
	// Time is the record's.
	Time        int64
	PID, Parent uint32
	// Creator is who called CreateProcess, which may have named another parent; of KernelProcess's starts.
	Creator uint32
	// Terminal is the terminal services session: 1<<32-1 for none.
	Terminal uint32
	// Created and Exited are FILETIMEs: 100 ns since 1601, UTC. Of KernelProcess.
	Created, Exited int64
	// Code is the exit code; in a record of the system logger 259 means that it runs.
	Code uint32
	// Cycles of a CPU, and Faults that had to read from disk.
	Cycles uint64
	Faults uint32
	// Image is a path as the kernel names it, of KernelProcess's starts; else a file's name, of KernelProcess's
	// ends its first 14 letters.
	Image string
	// CommandLine and User ("S-1-5-18") are of the system logger.
	CommandLine, User string
	// Key is unique while the process lives; of the system logger.
	Key uint64
}

// Decoder decodes records of processes, and counts those that it cannot.
type Decoder struct {
	unknown, malformed map[string]uint64
}

// Decode returns what a record tells of a process; false if it tells nothing of one, or cannot be read.
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

// Unknown counts records in versions that it cannot read, by provider, what they tell, and version.
func (d *Decoder) Unknown() map[string]uint64 { return maps.Clone(d.unknown) }

// Malformed counts records that are too short for their version.
func (d *Decoder) Malformed() map[string]uint64 { return maps.Clone(d.malformed) }

func count(m *map[string]uint64, key string) {
	if *m == nil {
		*m = map[string]uint64{}
	}
	(*m)[key]++
}

// kindOf is what a record tells by its number: the provider's manifest, and Process_TypeGroup1 of wmicore.mof.
func kindOf(r *Record) What {
	switch r.Provider {
	case KernelProcess:
		return map[uint16]What{1: Start, 2: End, 15: Present}[r.ID]
	case SystemProcess:
		return map[uint8]What{1: Start, 2: End, 3: Present, 4: Remains, 39: Defunct}[r.Opcode]
	}
	return 0
}

// kernelProcess reads a record of Microsoft-Windows-Kernel-Process; false if nobody knows its version.
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

// kernelStart reads versions 0 to 2 of a start. What they have behind the image is of its file.
func kernelStart(p *Process, from *payload, flags bool) {
	p.PID, p.Created, p.Parent, p.Terminal = from.u32(), int64(from.u64()), from.u32(), from.u32()
	if flags {
		from.u32()
	}
	p.Image = from.wide()
}

// kernelStartNumbered reads versions 3 to 5 of a start: a number stands behind each process's, and how
// privileged it is before the image.
func kernelStartNumbered(p *Process, from *payload) {
	p.PID = from.u32()
	from.u64()
	p.Created, p.Parent = int64(from.u64()), from.u32()
	from.u64()
	p.Terminal = from.u32()
	from.take(4 + 4 + 4) // flags, type of elevation, whether elevated
	from.sid()           // the mandatory label
	p.Image = from.wide()
}

func kernelEnd(p *Process, from *payload) {
	p.PID = from.u32()
	if p.Version >= 2 {
		from.u64()
	}
	p.Created, p.Exited, p.Code = int64(from.u64()), int64(from.u64()), from.u32()
	from.take(4 + 4 + 8 + 8) // type of elevation, handles, memory committed now and at most
	if p.Version >= 1 {
		p.Cycles = from.u64()
		from.take(4 * 4) // reads, writes, and their KB
		p.Faults = from.u32()
	}
	p.Image = from.ansi()
}

// systemProcess reads a record of the system logger; false if nobody knows its version.
func systemProcess(p *Process, from *payload) bool {
	if p.Version > 5 {
		return false
	}
	if p.Version == 0 {
		p.PID, p.Parent = uint32(from.address()), uint32(from.address())
	} else {
		p.Key = from.address() // version 1 has the page directory there
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
