package judge

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
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
