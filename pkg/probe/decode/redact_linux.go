package decode

import (
	"fmt"
	"hash/maphash"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/image"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/text"
)

// acquaint has a run know what it was told by its environment and arguments.
func (d *Decoder) acquaint(p *process, e *event.Exec) {
	if d.options.Environ != nil {
		p.environ = append(p.environ, d.options.Environ(e)...)
	}
	image.Acquaint(p.run.known, e, p.environ, p.arguments)
	p.environ, p.arguments = nil, nil
}

// redact takes from an event of a process's inside what must not leave. Mentions are looked for before.
func (d *Decoder) redact(process event.Process, body event.Body) {
	known := d.known(process)
	switch b := body.(type) {
	case *event.Wait:
		b.Path = d.distinct(b.Path, known.Path(b.Path))
		d.person(known, b.Holder)
	case *event.Setting:
		b.Key, b.Value = known.Setting(b.Key, b.Value)
	case *event.Connect:
		if b.Network == "unix" {
			b.Address = d.distinct(b.Address, socketPath(known, b.Address))
		}
		d.person(known, b.Listener)
	case *event.Exchange:
		if b.Network == "unix" {
			b.Address = d.distinct(b.Address, socketPath(known, b.Address))
		}
		d.person(known, b.Peer)
	case *event.Accept:
		d.person(known, &b.Agent)
	case *event.Request:
		for _, name := range []*string{&b.Interface.Name, &b.Interface.Peer, &b.Interface.Kind, &b.Table, &b.Chain, &b.Program} {
			*name = object(known, *name)
		}
		b.Path = known.Path(b.Path)
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

// Redact takes from an exchange that is told of before it is over what must not leave.
func (d *Decoder) Redact(x *event.Exchange) { d.redact(x.Process, x) }

// Programs cleans and redacts names of programs that were run for nobody.
func (d *Decoder) Programs(names []string) []string {
	for i, name := range names {
		names[i] = d.nobody.Program(text.Clean(name, 16))
	}
	return names
}

// person redacts who has a lock or answers: what a program is called it may have chosen, or who started it.
func (d *Decoder) person(known *redact.Call, h *event.Actor) {
	if h == nil {
		return
	}
	for _, known := range [...]*redact.Call{known, d.known(h.Process)} {
		h.Name, h.Parent = known.Program(h.Name), known.Program(h.Parent)
	}
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
func (d *Decoder) distinct(path, redacted string) string {
	if path == redacted {
		return path
	}
	at := strings.LastIndex(redacted, "›")
	return fmt.Sprintf("%s %08x%s", redacted[:at], uint32(maphash.String(d.seed, path)), redacted[at:])
}
