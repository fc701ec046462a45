package event

import "slices"

// Fault is why a program cannot be started.
type Fault string

// Faults.
const (
	FaultAbsent       Fault = "absent" // missing, or File is a broken link to Needs
	FaultName         Fault = "name"   // a path, which libcni refuses
	FaultUnreadable   Fault = "unreadable"
	FaultMode         Fault = "mode"         // not executable (EACCES)
	FaultEmpty        Fault = "empty"        // no content (ENOEXEC)
	FaultMount        Fault = "mount"        // mounted noexec (EACCES)
	FaultFormat       Fault = "format"       // neither a program nor a script (ENOEXEC)
	FaultArchitecture Fault = "architecture" // another architecture (ENOEXEC)
	FaultInterpreter  Fault = "interpreter"  // no interpreter or dynamic loader (ENOENT)
	FaultLibrary      Fault = "library"      // not found by the dynamic loader
	FaultVersion      Fault = "version"      // a library is too old
)

// Programs reports which plugins cannot be started.
type Programs struct {
	// Examined plugins.
	Looked []string  `json:"looked,omitempty"`
	Faults []Program `json:"faults,omitempty"`
	// The runtime runs loopback.
	Loopback bool `json:"loopback,omitempty"`
}

// Sound reports whether a plugin was examined and can be started.
func (p *Programs) Sound(name string) bool {
	return p != nil && slices.Contains(p.Looked, name) && p.Of(name) == nil
}

// Of returns the fault of a plugin, or nil.
func (p *Programs) Of(name string) *Program {
	if p == nil {
		return nil
	}
	if i := slices.IndexFunc(p.Faults, func(f Program) bool { return f.Name == name }); i >= 0 {
		return &p.Faults[i]
	}
	return nil
}

func (*Programs) Doer() Process { return "" }

// Program is a program that cannot be started.
type Program struct {
	// Name is as the caller looks for it; File is empty if no directory has it.
	Name  string `json:"name"`
	File  string `json:"file,omitempty"`
	Fault Fault  `json:"fault"`
	// What it needs: interpreter, library, version, or architecture.
	Needs string `json:"needs,omitempty"`
	// What is there instead: architecture, mount point, library, directories, or file mode.
	Has string `json:"has,omitempty"`
}
