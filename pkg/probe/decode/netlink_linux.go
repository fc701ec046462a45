package decode

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/netlink"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// asked is valid until the next call.
func (d *Decoder) asked(r record) *netlink.Call {
	if d.asks.Errno == nil {
		d.asks.Errno = errno
		d.asks.ByFile = func(fd uint32) event.Namespace { return d.byFile(d.asks.Process, fd) }
		d.asks.ByPID = func(pid uint32) event.Namespace { return d.byPID(d.calls.H.Task.Pid, pid) }
	}
	d.asks.Process, d.asks.Thread, d.asks.Start = r.process, r.Thread, int64(r.Start)
	d.asks.NetNS = d.namespace(r.NetnsCookie, r.NetnsInum)
	d.asks.Family, d.asks.Port = r.Protocol, r.Port
	return &d.asks
}

func overNetlink(read func(*Decoder, record) []event.Body) handler {
	return func(d *Decoder, r record) ([]event.Body, bool) {
		if r.NetnsInum == 0 {
			return nil, false
		}
		return read(d, r), true
	}
}

func (d *Decoder) requests(r record) []event.Body {
	bodies := r.room
	for _, q := range d.asked(r).Requests(r.data) {
		d.touch(q)
		d.askedFor(q)
		bodies = append(bodies, q)
	}
	if rest := r.Ret - int64(len(r.data)); r.Cut != 0 && rest > 0 {
		bodies = append(bodies, &event.Cut{Process: r.process, What: "bytes", Count: uint64(rest)})
	}
	return bodies
}

func (d *Decoder) answers(r record) []event.Body {
	bodies := r.room
	for _, body := range d.asked(r).Answers(r.data) {
		switch b := body.(type) {
		case *event.Address:
			if !d.told(b) {
				continue
			}
		case *event.Link:
			if !d.named(b) {
				continue
			}
		}
		bodies = append(bodies, body)
	}
	return bodies
}

type names map[string]string

// note reports a new name, and empties a full table.
func (n *names) note(l *event.Link, most int) bool {
	at := place(l.NetNS, l.Index)
	if (*n)[at] == l.Name {
		return false
	}
	if *n == nil || len(*n) >= most {
		*n = names{}
	}
	(*n)[at] = l.Name
	return true
}

func (d *Decoder) named(l *event.Link) bool {
	d.links.note(l, maxNames)
	p := d.processes[l.Process]
	return p != nil && p.links.note(l, maxLinks)
}

// called names the node's interface that a request gives by index, which a namespace never reuses. In pods the owners
// choose names.
func (d *Decoder) called(b event.Body) string {
	q, is := b.(*event.Request)
	if !is || q.Interface.Index == 0 || q.NetNS.Key != d.home {
		return ""
	}
	if q.Protocol == "bpf" && q.Interface.Name != "" {
		return q.Interface.Name
	}
	return d.links[place(q.NetNS, q.Interface.Index)]
}

func (d *Decoder) byFile(process event.Process, fd uint32) event.Namespace {
	if p := d.processes[process]; p != nil {
		return p.files[fd]
	}
	return event.Namespace{}
}

// byPID takes our namespace's pid. The result has no key.
func (d *Decoder) byPID(pid, number uint32) event.Namespace {
	own, err1 := procfs.OwnNamespace("pid")
	its, err2 := procfs.Namespace(int(pid), "pid")
	if err1 != nil || err2 != nil || own != its {
		return event.Namespace{}
	}
	inode, err := procfs.Namespace(int(number), "net")
	if err != nil {
		return event.Namespace{}
	}
	return event.Namespace{Label: strconv.FormatUint(uint64(inode), 10)}
}

func (d *Decoder) legacy(r record) []event.Body {
	if kernel.InsideClass(r.Class) == kernel.InsideClassCLASS_SETSOCKOPT {
		return one(r, d.asked(r).Replace(r.Args[1], r.Ret, r.data))
	}
	return one(r, d.asked(r).Ioctl(uint32(r.Args[1]), r.Ret, r.data))
}

func (d *Decoder) askedFor(q *event.Request) {
	if q.Object != event.ObjectAddress || q.Verb != event.VerbAdd && q.Verb != event.VerbChange {
		return
	}
	a, err := netip.ParsePrefix(q.Address)
	if p := d.processes[q.Process]; p != nil && err == nil && a.Addr().Is6() {
		p.mark(addressKey(q.NetNS, q.Interface.Index, q.Address), "")
	}
}

// told reports whether an address's state is new to the process. An unknown address counts only if it is not ready
// and concerns the plugin.
func (d *Decoder) told(a *event.Address) bool {
	p := d.processes[a.Process]
	if p == nil {
		return false
	}
	key := addressKey(a.NetNS, a.Index, a.Address)
	last, known := p.addresses[key]
	if known && last == a.State || !known && (a.State == event.AddressReady || !concerned(p, a.NetNS, a.Index)) {
		return false
	}
	return p.mark(key, a.State)
}

func (d *Decoder) touch(q *event.Request) {
	p := d.processes[q.Process]
	if p == nil || q.Query() || q.Interface.Index == 0 {
		return
	}
	if p.run.touched == nil {
		p.run.touched = map[string]bool{}
	}
	if len(p.run.touched) < maxTouched {
		p.run.touched[place(q.NetNS, q.Interface.Index)] = true
	}
}

func concerned(p *process, ns event.Namespace, index uint32) bool {
	r := p.run
	return r.of != nil && r.of.Home.Key != "" && r.of.Home.Key != ns.Key || r.touched[place(ns, index)]
}

func place(ns event.Namespace, index uint32) string {
	return fmt.Sprintf("%s %d", ns.Key, index)
}

func addressKey(ns event.Namespace, index uint32, address string) string {
	return place(ns, index) + " " + address
}

func (p *process) mark(key string, state event.AddressState) bool {
	if p.addresses == nil {
		p.addresses = map[string]event.AddressState{}
	}
	if _, known := p.addresses[key]; !known && len(p.addresses) >= maxAddresses {
		return false
	}
	p.addresses[key] = state
	return true
}
