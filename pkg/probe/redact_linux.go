package probe

import (
	"fmt"
	"hash/maphash"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/redact"
)

// known returns what is known of the call that a process works for, also where it outlives its
// plugin. Whatever a plugin runs may repeat what the plugin was told, so they are judged by the
// same.
func (in *interior) known(process event.Process) *redact.Call {
	if p := in.processes[process]; p != nil && p.known != nil {
		return p.known
	}
	return &in.nobody
}

// acquaint returns what is known of a run that begins. A delegate and who called it repeat each
// other, so that they know the same.
func (in *interior) acquaint(p *inhabitant, e *event.Exec) *redact.Call {
	if p.known == nil {
		p.known = &redact.Call{}
	}
	known, c := p.known, e.Call
	known.Await()
	known.Name(e.Name, c.Command, c.ContainerID, c.IfName, c.NetNS, baseName(c.NetNS), c.Pod.Namespace, c.Pod.Name, c.Pod.UID)
	if in.environ != nil {
		p.environ = append(p.environ, in.environ(e)...)
	}
	for _, variable := range p.environ {
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case name == "CNI_ARGS":
			known.Environment(strings.Split(value, ";")...)
		case !wantedVariable(name): // what these say leaves, or is what the call is named by
			known.Environment(variable)
		}
	}
	known.Arguments(p.arguments...)
	p.environ, p.arguments = nil, nil
	return known
}

// redact takes from an event of a process's inside what must not leave. Mentions are looked
// for before.
func (in *interior) redact(process event.Process, body event.Body) {
	known := in.known(process)
	switch b := body.(type) {
	case *event.Wait:
		b.Path = in.distinct(b.Path, known.Path(b.Path))
		in.person(known, b.Holder)
	case *event.Setting:
		b.Key, b.Value = known.Setting(b.Key, b.Value)
	case *event.Connect:
		if b.Network == "unix" {
			b.Address = in.distinct(b.Address, socketPath(known, b.Address))
		}
		in.person(known, b.Listener)
	case *event.Accept:
		in.person(known, &b.Agent)
	case *event.Request:
		for _, name := range []*string{&b.Interface.Name, &b.Interface.Peer, &b.Interface.Kind, &b.Table, &b.Chain} {
			*name = object(known, *name)
		}
		if b.Query() && !known.Argument(b.Interface.Name) { // what is asked for need not be there
			b.Interface.Name = known.Word(b.Interface.Name)
		}
	case *event.Link: // it is there, and anybody can see it
		b.Name = object(known, b.Name)
		known.Name(b.Name)
	case *event.Answer:
		b.Message = object(known, b.Message) // the kernel's own words
	}
}

// person redacts who has a lock or answers: what a program is called it may have chosen, or who
// started it.
func (in *interior) person(known *redact.Call, h *event.Actor) {
	if h == nil {
		return
	}
	for _, known := range [...]*redact.Call{known, in.known(h.Process)} {
		h.Name, h.Parent = known.Program(h.Name), known.Program(h.Parent)
	}
}

// object is the name of one of the kernel's, which is what it is called by, unless it repeats
// what the plugin was told.
func object(known *redact.Call, name string) string {
	if known.Repeats(name) {
		return known.Word(name)
	}
	return name
}

// socketPath is the address of a socket: a path, or a name behind an @.
func socketPath(known *redact.Call, address string) string {
	if name, abstract := strings.CutPrefix(address, "@"); abstract {
		return "@" + known.Path(name)
	}
	return known.Path(address)
}

// distinct adds a hash to the redacted path of a lock or socket, so that two whose names were
// removed still differ. Nobody can compute it without the seed.
func (in *interior) distinct(path, redacted string) string {
	if path == redacted {
		return path
	}
	at := strings.LastIndex(redacted, "›")
	return fmt.Sprintf("%s %08x%s", redacted[:at], uint32(maphash.String(in.seed, path)), redacted[at:])
}
