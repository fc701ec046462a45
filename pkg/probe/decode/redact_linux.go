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

func (d *Decoder) acquaint(p *process, e *event.Exec) {
	if d.options.Environ != nil {
		p.environ = append(p.environ, d.options.Environ(e)...)
	}
	d.most -= p.run.known.Kept()
	image.Acquaint(p.run.known, &d.inherited, e, p.environ, p.arguments)
	d.most += p.run.known.Kept()
	p.environ, p.arguments = nil, nil
}

// redact removes secrets. Mentions come first, because they need the original.
func (d *Decoder) redact(process event.Process, body event.Body) {
	if w, is := body.(*event.Wait); is && w.Path == "" && w.Holder == nil {
		return
	}
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
		if b.Query() && !known.Argument(b.Interface.Name) { // a query may name anything
			b.Interface.Name = known.Word(b.Interface.Name)
		}
	case *event.Link: // any process can see it
		b.Name = object(known, b.Name)
		known.Name(b.Name)
	case *event.Answer:
		b.Message = object(known, b.Message) // the kernel's words
	}
}

// Redact removes secrets from a pending exchange.
func (d *Decoder) Redact(x *event.Exchange) { d.redact(x.Process, x) }

// Programs cleans and redacts programs' names without a call.
func (d *Decoder) Programs(names []string) []string {
	for i, name := range names {
		names[i] = d.nobody.Program(text.Clean(name, 16))
	}
	return names
}

// person redacts names that the actor or its parent may have chosen.
func (d *Decoder) person(known *redact.Call, h *event.Actor) {
	if h == nil {
		return
	}
	for _, known := range [...]*redact.Call{known, d.known(h.Process)} {
		h.Name, h.Parent = known.Program(h.Name), known.Program(h.Parent)
	}
}

func socketPath(known *redact.Call, address string) string {
	if name, abstract := strings.CutPrefix(address, "@"); abstract {
		return "@" + known.Path(name)
	}
	return known.Path(address)
}

// distinct keeps paths different by a seeded hash.
func (d *Decoder) distinct(path, redacted string) string {
	if path == redacted {
		return path
	}
	at := strings.LastIndex(redacted, "›")
	return fmt.Sprintf("%s %08x%s", redacted[:at], uint32(maphash.String(d.seed, path)), redacted[at:])
}
