package winproc

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/image"
	"github.com/cniscope/cniscope/pkg/probe/proctracker"
	"github.com/cniscope/cniscope/pkg/windows/etw"
)

// watched stays open until its end is reported.
type watched struct {
	pid, parent uint32
	created     Filetime
	name        string
	process     Process // nil if it could not be opened
	file        string
	told        Parameters
	whole       bool // told is complete, although file may be missing
	state       reading
	tries       int
	// since is on the monotonic clock; began is as reported, until the process is read.
	since, began int64
}

type reading int

const (
	early reading = iota // to be retried
	read
	failed
)

// Reasons in Stats.Unread.
const (
	unreadGone    = "gone"    // it had exited
	unreadEarly   = "early"   // within triesMax attempts
	unreadRefused = "refused" // such as a protected process
)

// triesMax lasts 0.1 s at an interval of 10 ms.
const triesMax = 10

func (w *watched) look() (done bool, why string) {
	if w.state != early {
		return true, ""
	}
	w.tries++
	err := w.ask()
	if err == nil {
		w.state = read
		return true, ""
	}
	_, over := w.process.Ended()
	refused := errors.Is(err, fs.ErrPermission)
	last := over || refused || w.tries >= triesMax
	switch {
	case !last: // a starting program moves its parameters
		return false, ""
	case w.whole: // its name replaces the file
		w.state = read
		return true, ""
	case over:
		why = unreadGone
	case errors.Is(err, ErrEarly):
		why = unreadEarly
	default:
		why = unreadRefused
	}
	w.state = failed
	return true, why
}

// ask reads parameters, and the program's path, which decides whether it is a plugin.
func (w *watched) ask() error {
	if !w.whole {
		told, err := Told(w.process)
		if err != nil {
			return err
		}
		w.told, w.whole = told, true
	}
	if strings.Contains(w.file, `\`) {
		return nil
	}
	file, err := w.process.File()
	if err == nil {
		w.file = file
	}
	return err
}

// heard uses an exited process's event: a command line identifies a command, but only an environment a plugin.
func (w *watched) heard(c etw.Change, command bool) {
	if w.name == "" {
		w.name = base(c.Image)
	}
	if w.file == "" && w.state == failed { // a device path matches no plugin directory
		w.file = c.Image
	}
	if w.state == failed && command && c.CommandLine != "" {
		w.told.CommandLine, w.state = c.CommandLine, read
	}
}

func (w *watched) image() image.Image {
	im := image.Image{
		File: program(cmp.Or(w.file, w.name)), Args: split(w.told.CommandLine), Env: told(w.told.Environment),
		Truncated: w.told.Truncated, Separator: ";",
	}
	if len(im.Args) > 0 {
		im.Args[0] = program(im.Args[0])
		if !strings.Contains(w.file, `\`) && strings.EqualFold(path.Base(im.Args[0]), path.Base(im.File)) {
			im.File = im.Args[0] // only the command line has the path
		}
	}
	// Windows paths ignore case.
	vars, _ := image.Parse(im.Env)
	for folder := range vars.Folders(im.Separator) {
		if strings.EqualFold(folder, path.Dir(im.File)) {
			im.File = folder + "/" + path.Base(im.File)
		}
	}
	return im
}

func (p Parameters) command() bool {
	return slices.ContainsFunc(p.Environment, func(v string) bool { return strings.HasPrefix(v, "CNI_COMMAND=") })
}

// Look implements proctracker.Looker.
func (r *reader) Look(pid, up uint32, stranger bool) (s proctracker.Sight, ok bool) {
	s.Parent, s.At = up, r.clock()
	w := r.watched[pid]
	if w == nil {
		return s, stranger // unwatched processes are unknown
	}
	s.Parent, s.Began, s.Name = w.parent, w.since, program(w.name)
	if w.state != read {
		return s, false
	}
	s.Image = w.image()
	return s, true
}

// Caller implements proctracker.Looker. It trusts only the runtime's children: a container can have any environment.
func (r *reader) Caller(pid uint32) event.Caller {
	if w := r.watched[pid]; w != nil && r.runtime(w.parent, w.created) {
		return event.CallerRuntime
	}
	return ""
}

func (r *reader) Runtime(pid uint32) bool {
	return slices.ContainsFunc(*r.anchored.Load(), func(a anchor.Anchor) bool { return a.PID == int(pid) && r.lives(a) })
}

// runtime reports whether parent is the runtime and older than created; otherwise its PID was reused.
func (r *reader) runtime(parent uint32, created Filetime) bool {
	return slices.ContainsFunc(*r.anchored.Load(), func(a anchor.Anchor) bool {
		return a.PID == int(parent) && a.Start <= created.unix() && r.lives(a)
	})
}

func (r *reader) Alive(pid uint32, began int64) bool {
	w := r.watched[pid]
	if w == nil || w.process == nil {
		return false
	}
	if d := w.since - began; d > aliveWithin || d < -aliveWithin {
		return false
	}
	end, over := w.process.Ended()
	return !over || r.monotonic(end.At) > r.clock()-toldWithin
}

// toldWithin is longer than event tracing's delay; until then polling reports no end.
const toldWithin = int64(200 * time.Millisecond)

// aliveWithin is the tolerance of start times, which come from two clocks.
const aliveWithin = int64(10 * time.Millisecond)

var _ proctracker.Looker = (*reader)(nil)

var ordinary = []string{
	"ALLUSERSPROFILE", "COMMONPROGRAMFILES", "COMMONPROGRAMFILES(X86)", "COMMONPROGRAMW6432", "COMSPEC", "DRIVERDATA",
	"NUMBER_OF_PROCESSORS", "OS", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROCESSOR_IDENTIFIER", "PROCESSOR_LEVEL",
	"PROCESSOR_REVISION",
	"PROGRAMDATA", "PROGRAMFILES",
	"PROGRAMFILES(X86)", "PROGRAMW6432", "PSMODULEPATH", "PUBLIC", "SYSTEMDRIVE", "SYSTEMROOT", "WINDIR",
}

// told removes ordinary variables and PATH entries of Windows, and converts CNI paths to slashes.
func told(environment []string) (all []string) {
	root := ""
	for _, variable := range environment {
		if name, value, _ := strings.Cut(variable, "="); strings.EqualFold(name, "SystemRoot") {
			root = strings.ToLower(slashed(value)) + "/"
		}
	}
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		switch name = strings.ToUpper(name); {
		case slices.Contains(ordinary, name):
		case name == "PATH":
			own := slices.DeleteFunc(strings.Split(value, ";"), func(folder string) bool {
				return root != "" && strings.HasPrefix(strings.ToLower(slashed(folder))+"/", root)
			})
			all = append(all, "PATH="+strings.Join(own, ";"))
		case name == "CNI_PATH":
			all = append(all, "CNI_PATH="+slashed(value))
		default:
			all = append(all, variable)
		}
	}
	return all
}
