package probe

import (
	"fmt"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/netlink"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// call is what pkg/netlink must know of a record to read its bytes.
func (in *interior) call(r record) *netlink.Call {
	return &netlink.Call{
		Process: r.process, Thread: r.Thread, Start: int64(r.Start), NetNS: namespace(r.NetnsCookie, r.NetnsInum),
		Family: r.Protocol, Port: r.Port, Errno: errno,
		ByFile: func(fd uint32) event.Namespace { return in.byFile(r.process, fd) },
		ByPID:  func(pid uint32) event.Namespace { return in.byPID(r.H.Task.Pid, pid) },
	}
}

// netlink returns what was asked of the kernel through a netlink socket, or how it answered.
func (in *interior) netlink(r record) []event.Body {
	switch kernel.InsideClass(r.Class) {
	case kernel.InsideClassCLASS_SENDTO, kernel.InsideClassCLASS_SENDMSG:
		return in.requests(r)
	default:
		return in.answers(r)
	}
}

func (in *interior) requests(r record) (bodies []event.Body) {
	for _, q := range in.call(r).Requests(r.data) {
		in.touch(q)
		in.askedFor(q)
		bodies = append(bodies, q)
	}
	if rest := r.Ret - int64(len(r.data)); r.Cut != 0 && rest > 0 {
		bodies = append(bodies, &event.Cut{Process: r.process, What: "bytes", Count: uint64(rest)})
	}
	return bodies
}

// answers returns what the kernel said that its reader did not know.
func (in *interior) answers(r record) (bodies []event.Body) {
	for _, body := range in.call(r).Answers(r.data) {
		switch b := body.(type) {
		case *event.Address:
			if !in.told(b) {
				continue
			}
		case *event.Link:
			if !in.named(b) {
				continue
			}
		}
		bodies = append(bodies, body)
	}
	return bodies
}

// named tells whether a process did not know yet what an interface is called.
func (in *interior) named(l *event.Link) bool {
	p := in.processes[l.Process]
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
func (in *interior) byFile(process event.Process, fd uint32) event.Namespace {
	if p := in.processes[process]; p != nil && p.files[fd] != 0 {
		return in.namespaceOf(p.files[fd])
	}
	return event.Namespace{}
}

// byPID is the namespace of the process that another one, pid, calls number: that is ours for
// it, too, where both are in one PID namespace.
func (in *interior) byPID(pid, number uint32) event.Namespace {
	own, err1 := procfs.OwnNamespace("pid")
	its, err2 := procfs.Namespace(int(pid), "pid")
	if err1 != nil || err2 != nil || own != its {
		return event.Namespace{}
	}
	inode, err := procfs.Namespace(int(number), "net")
	if err != nil {
		return event.Namespace{}
	}
	return in.namespaceOf(inode)
}

// legacy returns what was asked by ioctl, or by iptables' own interface; nil where that has
// nothing to do with the network's configuration.
func (in *interior) legacy(r record) *event.Request {
	if kernel.InsideClass(r.Class) == kernel.InsideClassCLASS_SETSOCKOPT {
		return in.call(r).Replace(r.Args[1], r.Ret, r.data)
	}
	return in.call(r).Ioctl(uint32(r.Args[1]), r.Ret, r.data)
}
