package event

import (
	"fmt"
	"slices"

	"github.com/cniscope/cniscope/pkg/text"
)

// Fault is why a program cannot be started.
type Fault string

// Faults.
const (
	FaultAbsent       Fault = "absent" // no directory has the file
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
	// Names of the examined plugins.
	Looked []string  `json:"looked,omitempty"`
	Faults []Program `json:"faults,omitempty"`
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

// String returns the fault as a clause.
func (p Program) String() string {
	switch p.Fault {
	case FaultAbsent:
		return "it is not in " + p.Has
	case FaultName:
		return "its name is a path"
	case FaultUnreadable:
		return fmt.Sprintf("%s: %s", p.File, p.Has)
	case FaultMode:
		return fmt.Sprintf("%s is not executable (mode %s)", p.File, p.Has)
	case FaultEmpty:
		return p.File + " is empty: has it been copied?"
	case FaultMount:
		return fmt.Sprintf("%s is on a file system that is mounted noexec (%s)", p.File, p.Has)
	case FaultArchitecture:
		return fmt.Sprintf("%s is built for %s, this node is %s", p.File, p.Needs, p.Has)
	case FaultInterpreter:
		return fmt.Sprintf("%s needs the interpreter %s, which does not exist", p.File, p.Needs)
	case FaultLibrary:
		return fmt.Sprintf("%s needs the library %s, which no library directory has", p.File, p.Needs)
	case FaultVersion:
		return fmt.Sprintf("%s needs %s, which %s does not have", p.File, p.Needs, p.Has)
	}
	return p.File + " is neither a program nor a script"
}

// Remedy returns the fix; empty if it is a new copy of the file.
func (p Program) Remedy() string {
	switch p.Fault {
	case FaultMode:
		return "chmod 755 " + text.Shell(p.File)
	case FaultMount:
		return "mount -o remount,exec " + text.Shell(p.Has)
	case FaultArchitecture:
		return fmt.Sprintf("replace %s with its build for %s", p.File, p.Has)
	case FaultInterpreter:
		return fmt.Sprintf("install the package that has %s, or replace %s with a statically linked build",
			p.Needs, p.File)
	case FaultLibrary:
		return fmt.Sprintf("install the package that has %s (ldd %s lists all), or replace %s with a statically linked build",
			p.Needs, text.Shell(p.File), p.File)
	case FaultVersion:
		return fmt.Sprintf("replace %s with a build for this node's %s, or a statically linked one", p.File, p.Has)
	}
	return ""
}
