package decode

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"unsafe"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

const stepsMax = 1024

// steps are the programs of sandboxes that start: the runtime runs the shim, which leaves a server; the server runs the
// OCI runtime (create, start); that runs init, hooks and commands.
type steps map[event.Process]*step

type step struct {
	event.Step
	exited bool // still known as a parent
}

const (
	stepServer event.StepKind = "server"
	stepInit   event.StepKind = "init"
)

func (d *Decoder) start(raw []byte) ([]event.Event, error) {
	if kernel.LifeKind(raw[0]) == kernel.LifeKindKIND_EXEC {
		w := &d.execs
		more, err := wire(w, raw, unsafe.Offsetof(w.Data))
		if err != nil {
			return nil, fmt.Errorf("start: %w", err)
		}
		files, args := int(w.FileLen), int(w.FileLen)+int(w.ArgsLen)
		if args > more {
			return nil, fmt.Errorf("start: %d bytes of text in a record with room for %d", args, more)
		}
		d.steps.begin(w, first(procfs.Split(w.Data[:files])), procfs.Split(w.Data[files:args]))
		return nil, nil
	}
	var w kernel.LifeExitEvent
	if _, err := wire(&w, raw, unsafe.Sizeof(w)); err != nil {
		return nil, fmt.Errorf("end of a start: %w", err)
	}
	s := d.steps[kernel.ProcessOf(w.H.Task)]
	if s == nil {
		return nil, nil
	}
	d.steps.end(s)
	s.Code, s.Signal = procfs.ExitOf(uint32(w.Status))
	s.Used = event.Usage{CPU: int64(w.Cpu), RunDelay: int64(w.Delay)}
	if s.Kind == stepServer || s.Kind == stepInit {
		return nil, nil
	}
	body := s.Step
	return []event.Event{{Time: int64(w.H.Time), Body: &body}}, nil
}

func (all steps) begin(w *kernel.LifeExecEvent, file string, args []string) {
	of := kernel.ProcessOf(w.H.Task)
	if all[of] != nil {
		return
	}
	s := &step{Step: event.Step{
		Process: of, Parent: kernel.ProcessOf(w.Parent), PID: w.H.Task.Pid, ParentPID: w.Parent.Pid,
		Started: int64(w.Started), Name: text.Clean(path.Base(file), text.Bound),
	}}
	up := all[s.Parent]
	switch {
	case kernel.LifeFlag(w.H.Flags)&kernel.LifeFlagFLAG_ROOT != 0:
		s.Kind, s.SandboxID = event.StepShim, text.Clean(after(args, "-id"), text.Bound)
	case up == nil: // lost
		return
	case up.Kind == event.StepShim:
		s.Kind = stepServer
	case up.Kind == stepServer:
		s.Kind, s.Verb, s.Systemd = event.StepRuntime, verb(args), slices.Contains(args, "--systemd-cgroup")
		if s.Verb == "" { // such as the shim itself, which holds a user namespace open until it is killed
			s.Kind = event.StepCommand
		}
	case len(args) > 1 && args[1] == "init":
		s.Kind = stepInit
	case w.StdinIno != 0 && (up.Kind == event.StepRuntime || up.Kind == stepInit):
		s.Kind = event.StepHook
	default:
		s.Kind = event.StepCommand
	}
	if up != nil {
		s.SandboxID = up.SandboxID
	}
	if len(all) >= stepsMax {
		maps.DeleteFunc(all, func(_ event.Process, s *step) bool { return s.exited })
	}
	if len(all) < stepsMax {
		all[of] = s
	}
}

// end keeps s for programs below it.
func (all steps) end(s *step) {
	s.exited = true
	if s.Verb == "start" || s.Kind == stepServer {
		maps.DeleteFunc(all, func(_ event.Process, other *step) bool { return other.SandboxID == s.SandboxID })
	}
}

func after(args []string, flag string) string {
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

func verb(args []string) string {
	for _, a := range args[min(1, len(args)):] {
		switch a {
		case "create", "start", "delete", "kill", "state", "run":
			return a
		}
	}
	return ""
}
