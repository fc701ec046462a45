package decode

import (
	"fmt"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/netlink"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// asked is what pkg/netlink must know of a record to read its bytes.
func (d *Decoder) asked(r record) *netlink.Call {
	return &netlink.Call{
		Process: r.process, Thread: r.Thread, Start: int64(r.Start), NetNS: namespace(r.NetnsCookie, r.NetnsInum),
		Family: r.Protocol, Port: r.Port, Errno: errno,
		ByFile: func(fd uint32) event.Namespace { return d.byFile(r.process, fd) },
		ByPID:  func(pid uint32) event.Namespace { return d.byPID(r.H.Task.Pid, pid) },
	}
}

func netlinked(on on) {
	over := func(read func(*Decoder, record) []event.Body) handler {
		return func(d *Decoder, r record) ([]event.Body, bool) {
			if r.NetnsInum == 0 { // of another kind of socket
				return nil, false
			}
			return read(d, r), true
		}
	}
	on(over((*Decoder).requests), kernel.InsideClassCLASS_SENDTO, kernel.InsideClassCLASS_SENDMSG)
	on(over((*Decoder).answers), kernel.InsideClassCLASS_RECVFROM, kernel.InsideClassCLASS_RECVMSG)
	on(over((*Decoder).legacy), kernel.InsideClassCLASS_SETSOCKOPT, kernel.InsideClassCLASS_IOCTL)
}

// requests are what was asked of the kernel through a netlink socket.
func (d *Decoder) requests(r record) (bodies []event.Body) {
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

// answers returns what the kernel said that its reader did not know.
func (d *Decoder) answers(r record) (bodies []event.Body) {
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

// named reports whether a process did not know yet what an interface is called.
func (d *Decoder) named(l *event.Link) bool {
	p := d.processes[l.Process]
	key := fmt.Sprint(l.NetNS.Key, " ", l.Index)
	if p == nil || p.links[key] == l.Name {
		return false
	}
	if p.links == nil || len(p.links) >= maxLinks {
		p.links = map[string]string{}
	}
	p.links[key] = l.Name
	return true
}

// byFile is the namespace that a process has open by a descriptor.
func (d *Decoder) byFile(process event.Process, fd uint32) event.Namespace {
	if p := d.processes[process]; p != nil && p.files[fd] != 0 {
		return d.namespaceOf(p.files[fd])
	}
	return event.Namespace{}
}

// byPID is the namespace of the process that another one, pid, calls number: that is ours for
// it, too, where both are in one PID namespace.
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
	return d.namespaceOf(inode)
}

// legacy returns what was asked by ioctl, or by iptables' own interface; none where that has
// nothing to do with the network's configuration.
func (d *Decoder) legacy(r record) []event.Body {
	if kernel.InsideClass(r.Class) == kernel.InsideClassCLASS_SETSOCKOPT {
		return one(d.asked(r).Replace(r.Args[1], r.Ret, r.data))
	}
	return one(d.asked(r).Ioctl(uint32(r.Args[1]), r.Ret, r.data))
}
