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

// watched is a process that the runtime, or one that is watched, started. It is held open until its end is told.
type watched struct {
	pid, parent uint32
	created     Filetime
	name        string
	process     Process // nil where it could not be opened
	file        string
	told        Parameters
	whole       bool // told was read, whether or not file was
	state       reading
	tries       int
	// since is when it was created, on the monotonic clock; began the same as it was told, while it waits for being read.
	since, began int64
}

// reading is how far a process was read.
type reading int

const (
	early reading = iota // it has to be asked again
	read
	failed
)

// The reasons of Stats.Unread.
const (
	unreadGone    = "gone"    // it had ended
	unreadEarly   = "early"   // it was not started, as often as it was asked
	unreadRefused = "refused" // another error: a protected process, say
)

// triesMax is how often a process is asked that has not been started: at a look each 10 ms for a tenth of a second.
const triesMax = 10

// look reads what a watched process was started with, unless it did before, and reports whether there
// is nothing more to be had.
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
	case !last: // a program that begins moves what it was told: that may be gone while it is read
		return false, ""
	case w.whole: // its name has to do
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

// ask reads what is not known yet of what a process was started with, and of where its program lies: that makes it a
// plugin.
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

// heard takes what was told of a process that was gone before it could be read: a command is known by its command
// line, a plugin only by its environment.
func (w *watched) heard(c etw.Change, command bool) {
	if w.name == "" {
		w.name = base(c.Image)
	}
	if w.file == "" && w.state == failed { // it names a device, in which no plugin is looked for
		w.file = c.Image
	}
	if w.state == failed && command && c.CommandLine != "" {
		w.told.CommandLine, w.state = c.CommandLine, read
	}
}

// image is what is known of it for others.
func (w *watched) image() image.Image {
	im := image.Image{
		File: program(cmp.Or(w.file, w.name)), Args: split(w.told.CommandLine), Env: told(w.told.Environment),
		Truncated: w.told.Truncated, Separator: ";",
	}
	if len(im.Args) > 0 {
		im.Args[0] = program(im.Args[0])
		if !strings.Contains(w.file, `\`) && strings.EqualFold(path.Base(im.Args[0]), path.Base(im.File)) {
			im.File = im.Args[0] // where it lies only its command line says
		}
	}
	// Windows does not tell large letters from small ones.
	vars, _ := image.Parse(im.Env)
	for _, folder := range vars.Folders(im.Separator) {
		if strings.EqualFold(folder, path.Dir(im.File)) {
			im.File = folder + "/" + path.Base(im.File)
		}
	}
	return im
}

// command reports whether a process was told of a CNI call.
func (p Parameters) command() bool {
	return slices.ContainsFunc(p.Environment, func(v string) bool { return strings.HasPrefix(v, "CNI_COMMAND=") })
}

// looker answers a Tracker by what was read already.
type looker struct {
	watched map[uint32]*watched
	anchors func() []anchor.Anchor
	// lives reports whether an anchor still runs.
	lives func(anchor.Anchor) bool
	now   func() int64
	// monotonic is what a time is on the monotonic clock.
	monotonic func(Filetime) int64
}

// Look implements proctracker.Looker.
func (l *looker) Look(pid, up uint32, stranger bool) (s proctracker.Sight, ok bool) {
	s.Parent, s.At = up, l.now()
	w := l.watched[pid]
	if w == nil {
		return s, stranger // who was started neither by the runtime nor by a plugin tells nothing
	}
	s.Parent, s.Began, s.Name = w.parent, w.since, program(w.name)
	if w.state != read {
		return s, false
	}
	s.Image = w.image()
	return s, true
}

// Caller implements proctracker.Looker: only what the container runtime itself has started is believed. Who runs
// in a container is in the table as everybody is, and is told whatever its image says.
func (l *looker) Caller(pid uint32) event.Caller {
	if w := l.watched[pid]; w != nil && l.runtime(w.parent, w.created) {
		return event.CallerRuntime
	}
	return ""
}

// Runtime implements proctracker.Looker.
func (l *looker) Runtime(pid uint32) bool {
	return slices.ContainsFunc(l.anchors(), func(a anchor.Anchor) bool { return a.PID == int(pid) && l.lives(a) })
}

// runtime reports whether a parent is the runtime, of a process that was created then: the runtime was there
// before, so nobody has its number who came later.
func (l *looker) runtime(parent uint32, created Filetime) bool {
	return slices.ContainsFunc(l.anchors(), func(a anchor.Anchor) bool {
		return a.PID == int(parent) && a.Start <= created.unix() && l.lives(a)
	})
}

// Alive implements proctracker.Looker.
func (l *looker) Alive(pid uint32, began int64) bool {
	w := l.watched[pid]
	if w == nil || w.process == nil {
		return false
	}
	if d := w.since - began; d > aliveWithin || d < -aliveWithin {
		return false
	}
	end, over := w.process.Ended()
	return !over || l.monotonic(end.At) > l.now()-toldWithin
}

// toldWithin is how long after it event tracing tells of an end, and more: nobody else need find it until then.
const toldWithin = int64(200 * time.Millisecond)

// aliveWithin is how far apart the time of a start as it was told, and as the process has it, may be: they are of two
// clocks, read one after another.
const aliveWithin = int64(10 * time.Millisecond)

var _ proctracker.Looker = (*looker)(nil)
