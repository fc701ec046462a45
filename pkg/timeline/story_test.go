package timeline

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/tree"
	"github.com/cniscope/cniscope/test/harness"
)

const ms = int64(time.Millisecond)

// story writes events by time and name.
type story struct {
	t      *testing.T
	line   *Timeline
	closed []*model.Operation
	left   []int64 // when closed, in ms
	told   []event.Event
}

// stories is a table of stories, each with a timeline of its own, and what the test says of it.
type stories map[string]struct {
	tell func(*story)
	want string
}

func (all stories) each(t *testing.T, begin func(*testing.T) *story, say func(*story) string) {
	t.Helper()
	for name, test := range all {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			test.tell(s)
			harness.Equal(t, say(s), test.want)
		})
	}
}

// over checks that nothing waits for an end.
func (s *story) over() {
	s.t.Helper()
	if n := s.line.Open() + held(s.line.connections, "sockets") + len(s.followed()); n != 0 {
		s.t.Errorf("%d operations, connections and processes are left", n)
	}
}

func (s *story) followed() (all []*active.Process) {
	s.line.tree.Each(func(p *tree.Process) {
		if mine := active.Of(p); mine != nil {
			all = append(all, mine)
		}
	})
	return all
}

// How many entries an internal part holds.
func held(of any, path ...string) int { return part(of, path...).Len() }

func part(of any, path ...string) reflect.Value {
	v := reflect.ValueOf(of).Elem()
	for _, name := range path {
		v = v.FieldByName(name)
	}
	return v
}

func tell(t *testing.T) *story {
	return &story{t: t, line: New(Options{
		Settle: time.Second, MaxHold: time.Minute, Processes: 64, Operations: 8, Images: 32, Facts: 16,
	})}
}

func (s *story) at(at int64, body event.Body) *story {
	s.told = append(s.told, event.Event{Time: at * ms, Body: body})
	for _, op := range s.line.Apply(s.told[len(s.told)-1]) {
		s.closed, s.left = append(s.closed, op), append(s.left, at)
	}
	return s
}

func (s *story) plugin(at int64, process, command, name string, change ...func(*event.Exec)) *story {
	e := &event.Exec{
		Process: event.Process(process), Parent: "cd", Root: true, InPath: true,
		File: "/opt/cni/bin/" + name, Name: name, Stdin: "pipe-" + process,
		Call: &event.Call{Command: command, ContainerID: "c1", IfName: "eth0", NetNS: "/run/netns/c1"},
	}
	for _, f := range change {
		f(e)
	}
	return s.at(at, e)
}

// In a process of its own.
func (s *story) command(at int64, process, parent, name string, change ...func(*event.Exec)) *story {
	s.at(at, &event.Fork{Process: event.Process(process), Parent: event.Process(parent)})
	return s.image(at, process, parent, name, change...)
}

// In an existing process.
func (s *story) image(at int64, process, parent, name string, change ...func(*event.Exec)) *story {
	e := &event.Exec{Process: event.Process(process), Parent: event.Process(parent), File: "/usr/sbin/" + name, Name: name}
	for _, f := range change {
		f(e)
	}
	return s.at(at, e)
}

func (s *story) exit(at int64, process string, code ...uint32) *story {
	e := &event.Exit{Process: event.Process(process)}
	if len(code) > 0 {
		e.Code = code[0]
	}
	return s.at(at, e)
}

func (s *story) end() *story {
	for _, op := range s.line.Flush() {
		s.closed, s.left = append(s.closed, op), append(s.left, s.line.now/ms)
	}
	return s
}

func (s *story) tick(at int64) *story { return s.at(at, &event.Tick{}) }

func delegate(e *event.Exec) {
	e.File, e.InPath, e.Stdin = "/opt/cni/bin/"+e.Name, true, "pipe-"+string(e.Process)
	e.Call = &event.Call{Command: "ADD", ContainerID: "c1", IfName: "eth0"}
}

func on(ifname string) func(*event.Exec)  { return func(e *event.Exec) { e.Call.IfName = ifname } }
func netns(path string) func(*event.Exec) { return func(e *event.Exec) { e.Call.NetNS = path } }
func by(process string) func(*event.Exec) {
	return func(e *event.Exec) { e.Parent = event.Process(process) }
}

func container(id string) func(*event.Exec) { return func(e *event.Exec) { e.Call.ContainerID = id } }

// Each operation and each call on a line, with images in brackets behind the one that ran them.
func draw(ops []*model.Operation) string {
	var all []string
	for _, op := range ops {
		line := fmt.Sprintf("%s %s %d-%d: %s", op.Kind, op.ContainerID, op.Start/ms, op.End/ms, op.Closed)
		for _, why := range op.Partial {
			line += "; partial: " + why
		}
		if op.Lost != 0 {
			line += fmt.Sprintf(", %d", op.Lost)
		}
		all = append(all, line)
		for _, c := range op.Calls {
			line := fmt.Sprintf("  %s %s %d-%d", c.Command, c.IfName, c.Start/ms, c.End/ms)
			if c.Network != "" {
				line += " network " + c.Network
			}
			if len(c.NeverRun) > 0 {
				line += " never run: " + strings.Join(c.NeverRun, ", ")
			}
			all = append(all, line+": "+drawImages(c.Runs))
		}
	}
	return strings.Join(all, "\n")
}

func drawImages(images []*model.Image) string {
	var all []string
	for _, im := range images {
		line := im.Name
		if im.Run != nil {
			line = im.Run.Plugin + " " + im.Run.Command
		}
		line += fmt.Sprintf(" %d-%d", im.Start/ms, im.End/ms)
		mark := func(is bool, name string) {
			if is {
				line += " (" + name + ")"
			}
		}
		mark(im.Outlived, "outlived")
		mark(im.Replaced, "replaced")
		mark(!im.Ended, "unfinished")
		mark(im.Code != 0, fmt.Sprint("exit ", im.Code))
		mark(im.InFlight, "in flight")
		if len(im.Children) > 0 {
			line += " [" + drawImages(im.Children) + "]"
		}
		all = append(all, line)
	}
	return strings.Join(all, ", ")
}

func bridged(types ...string) *event.Networks {
	n := event.Network{Name: "pods"}
	for _, t := range types {
		n.Plugins = append(n.Plugins, event.Plugin{Type: t})
	}
	return &event.Networks{Networks: []event.Network{n}}
}
