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
)

const ms = int64(time.Millisecond)

// story writes events by time and name.
type story struct {
	t      *testing.T
	line   *Timeline
	closed []*model.Operation
	left   []int64 // when closed, in ms
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
	for _, op := range s.line.Apply(event.Event{Time: at * ms, Body: body}) {
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

// One line each, indented by depth.
func draw(ops []*model.Operation) string {
	var b strings.Builder
	var image func(*model.Image, int)
	image = func(im *model.Image, depth int) {
		what := im.Name
		if im.Run != nil {
			what = im.Run.Plugin + " " + im.Run.Command
		}
		fmt.Fprintf(&b, "%s%s %d-%d", strings.Repeat("  ", depth), what, im.Start/ms, im.End/ms)
		for _, mark := range []struct {
			is   bool
			name string
		}{{im.Outlived, "outlived"}, {im.Replaced, "replaced"}, {!im.Ended, "unfinished"}, {
			im.Code != 0,
			fmt.Sprint("exit ", im.Code),
		}, {im.InFlight, "in flight"}} {
			if mark.is {
				fmt.Fprintf(&b, " (%s)", mark.name)
			}
		}
		b.WriteByte('\n')
		for _, child := range im.Children {
			image(child, depth+1)
		}
	}
	for _, op := range ops {
		fmt.Fprintf(&b, "%s %s %d-%d: %s", op.Kind, op.ContainerID, op.Start/ms, op.End/ms, op.Closed)
		for _, why := range op.Partial {
			fmt.Fprintf(&b, "; partial: %s", why)
		}
		b.WriteByte('\n')
		for _, c := range op.Calls {
			fmt.Fprintf(&b, "  %s %s %d-%d", c.Command, c.IfName, c.Start/ms, c.End/ms)
			if c.Network != "" {
				fmt.Fprintf(&b, " network %s", c.Network)
			}
			if len(c.NeverRun) > 0 {
				fmt.Fprintf(&b, " never run: %s", strings.Join(c.NeverRun, ", "))
			}
			b.WriteByte('\n')
			for _, run := range c.Runs {
				image(run, 2)
			}
		}
	}
	return b.String()
}

func bridged(types ...string) *event.Networks {
	n := event.Network{Name: "pods"}
	for _, t := range types {
		n.Plugins = append(n.Plugins, event.Plugin{Type: t})
	}
	return &event.Networks{Networks: []event.Network{n}}
}
