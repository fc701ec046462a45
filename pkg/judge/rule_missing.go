package judge

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/text"
)

func missing(e *evidence) *Verdict {
	first, rest := e.call.NeverRun[0], e.call.NeverRun[1:]
	also := ""
	if len(rest) > 0 {
		also = "; " + strings.Join(rest, ", ") + " did not run"
	}
	if wrong := e.call.Programs.Of(first); wrong != nil {
		v := unstartable(wrong)
		v.Says += also
		return v
	}
	if e.call.Programs.Sound(first) {
		return &Verdict{
			Cause: CauseRuntime, Says: fmt.Sprintf("plugin %s did not run, though its program can start", first) + also,
			Remedy: CauseRuntime.remedy() + "; \"text file busy\" or \"exec: already started\" there means that an " +
				"installer was writing the program",
		}
	}
	return &Verdict{ // unchecked
		Cause: CauseMissing, Says: fmt.Sprintf("plugin %s did not run; its binary may be missing", first) + also,
		Remedy: copyAgain(first), Report: "containerd/containerd#8419",
	}
}

func copyAgain(plugin string) string {
	return fmt.Sprintf("install plugin %s into the CNI binary directory and make it executable; cniscope doctor names the directory", plugin)
}

func unstartable(p *event.Program) *Verdict {
	says, remedy := Unstartable(*p)
	v := &Verdict{
		Cause: CauseMissing, Says: fmt.Sprintf("plugin %q cannot start: %s", p.Name, says),
		Remedy: cmp.Or(remedy, copyAgain(p.Name)),
	}
	if p.Fault == event.FaultAbsent {
		v.Report = "containerd/containerd#8419"
	}
	return v
}

// Unstartable returns a program's fault as a clause, and its fix unless that is a new copy.
func Unstartable(p event.Program) (says, remedy string) {
	static := fmt.Sprintf("or replace %s with a statically linked build", p.File)
	switch p.Fault {
	case event.FaultAbsent:
		if p.File != "" {
			return fmt.Sprintf("%s is a broken link to %s", p.File, p.Needs),
				fmt.Sprintf("run ln -sf with the path of the installed plugin and %s, or reinstall the package that "+
					"made this link", text.Shell(p.File))
		}
		return "it is not in " + p.Has, ""
	case event.FaultName:
		return "its name is a path", ""
	case event.FaultUnreadable:
		return fmt.Sprintf("%s: %s", p.File, p.Has), ""
	case event.FaultMode:
		return fmt.Sprintf("%s is not executable (mode %s)", p.File, p.Has), "chmod 755 " + text.Shell(p.File)
	case event.FaultEmpty:
		return p.File + " is empty; its copy may be incomplete", ""
	case event.FaultMount:
		return fmt.Sprintf("%s is on a file system that is mounted noexec (%s)", p.File, p.Has),
			"mount -o remount,exec " + text.Shell(p.Has)
	case event.FaultArchitecture:
		return fmt.Sprintf("%s is built for %s, this node is %s", p.File, p.Needs, p.Has),
			fmt.Sprintf("replace %s with its build for %s", p.File, p.Has)
	case event.FaultInterpreter:
		if strings.HasSuffix(p.Needs, `\r"`) {
			return p.File + " is a script whose first line ends in a carriage return, as on Windows",
				`sed -i 's/\r$//' ` + text.Shell(p.File)
		}
		return fmt.Sprintf("%s needs the interpreter %s, which does not exist", p.File, p.Needs),
			fmt.Sprintf("install the package that has %s, %s", p.Needs, static)
	case event.FaultLibrary:
		return fmt.Sprintf("%s needs the library %s, which no library directory has", p.File, p.Needs),
			fmt.Sprintf("install the package that has %s (ldd %s lists all), %s", p.Needs, text.Shell(p.File), static)
	case event.FaultVersion:
		return fmt.Sprintf("%s needs %s, which %s does not have", p.File, p.Needs, p.Has),
			fmt.Sprintf("replace %s with a build for this node's %s, or a statically linked one", p.File, p.Has)
	}
	return p.File + " is neither a program nor a script", ""
}

// unstartableRun is the verdict for a run that its dynamic loader could not load, or whose message names a program
// that the kernel did not start; or nil.
func unstartableRun(e *evidence) *Verdict {
	if e.call.Programs == nil {
		return nil
	}
	for _, p := range e.call.Programs.Faults {
		r := result(e.Failed)
		loader := map[event.Fault]uint32{event.FaultLibrary: loaderFailed, event.FaultVersion: versionFailed}
		own := p.Name == e.Failed.Run.Plugin && (r == nil || r.Message == "") && loader[p.Fault] != 0 && loader[p.Fault] == e.Failed.Code
		named := r != nil && p.Name != e.Failed.Run.Plugin && (strings.Contains(r.Message, "/"+p.Name+":") || strings.Contains(r.Message, fmt.Sprintf("%q", p.Name)))
		if own || named {
			v := unstartable(&p)
			v.Says = e.Failure + "; " + v.Says
			return v
		}
	}
	return nil
}

const (
	// loaderFailed is the exit code of the dynamic loader (glibc, musl), and of a shell without the command.
	loaderFailed  = 127
	versionFailed = 1 // glibc's, without a symbol's version
)
