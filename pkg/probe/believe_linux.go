package probe

import (
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// hostNamespaces are those of the first process of our PID namespace, by inode; 0 where one
// is not known, and then nobody is in it. The kernel side looks for itself.
type hostNamespaces struct{ mnt, net uint32 }

// readHostNamespaces reads those of the first process or, where it may not be looked into, our
// own: whoever shares ours is in the host's, too, or part of cniscope's container.
func readHostNamespaces() hostNamespaces {
	h := hostNamespaces{mnt: namespaceOf(1, "mnt"), net: namespaceOf(1, "net")}
	if h.mnt == 0 || h.net == 0 {
		h.mnt, _ = procfs.OwnNamespace("mnt")
		h.net, _ = procfs.OwnNamespace("net")
	}
	return h
}

// namespaceOf is the inode number of the namespace of a kind that a process is in; 0, which is
// nobody's, if that cannot be asked.
func namespaceOf(pid uint32, kind string) uint32 {
	inode, _ := procfs.Namespace(int(pid), kind)
	return inode
}

// sameNamespace reports whether two processes are in one namespace of a kind.
func sameNamespace(one, other uint32, kind string) bool {
	inode := namespaceOf(one, kind)
	return inode != 0 && inode == namespaceOf(other, kind)
}

// sessionOf is visible_session of bpf/task.h; 0 if the process is gone.
func sessionOf(pid uint32) uint32 {
	stat, _ := procfs.StatOf(int(pid))
	return uint32(stat.Session)
}

// caller tells why a process that began before the probe is believed, as far as /proc tells. The
// decision is caller_of's in bpf/believe.h: this one finds the calls that were under way when it
// began to be asked, and the tests of belief compare both. Agents are not known then.
func (p *Probe) caller(pid uint32) kernel.LifeCaller {
	has := rights(pid)
	forker := p.forkedBy(pid)
	mnt := namespaceOf(pid, "mnt")
	switch {
	case forker != nil && has != 0:
		return kernel.LifeCallerCALLER_RUNTIME
	case has != 0 && mnt != 0 && mnt == p.host.mnt:
		return kernel.LifeCallerCALLER_HOST
	case has&(1<<unix.CAP_SYS_ADMIN) != 0 && len(p.runtime()) == 0:
		return kernel.LifeCallerCALLER_PRIVILEGED
	case p.options.Rootless && forker != nil && forker.Rootless && sameNamespace(pid, uint32(forker.PID), "user"):
		if status, err := procfs.StatusOf(int(pid)); err == nil && status.Effective&either != 0 {
			return kernel.LifeCallerCALLER_ROOTLESS
		}
	}
	return kernel.LifeCallerCALLER_NOBODY
}

func (p *Probe) runtime() []anchor.Anchor {
	if p.options.Anchors == nil {
		return nil
	}
	return p.options.Anchors.List()
}

// forkedBy is the anchor that forked the process; nil if none did.
func (p *Probe) forkedBy(pid uint32) *anchor.Anchor {
	child, err := procfs.StatOf(int(pid))
	if err != nil {
		return nil
	}
	for _, a := range p.runtime() {
		if a.PID != child.Parent || !a.Alive() {
			continue
		}
		parent, err := procfs.StatOf(a.PID)
		if err != nil || parent.Session != child.Session || !sameNamespace(pid, uint32(a.PID), "pid") {
			return nil
		}
		return &a
	}
	return nil
}

const either = 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_SYS_ADMIN

// statusOnNode is what is said of the rights of a process in the initial user namespace; none of
// any other one, or where that cannot be asked.
func statusOnNode(pid uint32) procfs.Status {
	if namespaceOf(pid, "user") == procfs.InitialUser {
		if status, err := procfs.StatusOf(int(pid)); err == nil {
			return status
		}
	}
	return procfs.Status{}
}

// rights is what bpf/task.h says, read from /proc: the ownRights of a process on the node.
func rights(pid uint32) uint64 { return ownRights(statusOnNode(pid)) }

// ownRights are those rights by which the process may change a node's network, and that its caller had, too.
func ownRights(s procfs.Status) uint64 {
	if s.UID != 0 {
		s.Effective &= s.Ambient
	}
	return s.Effective & either
}

// privilegedHere is privileged_on_node of bpf/task.h.
func (h hostNamespaces) privilegedHere(pid uint32) bool {
	has := statusOnNode(pid).Effective
	if has&(1<<unix.CAP_SYS_ADMIN) != 0 {
		return true
	}
	net := namespaceOf(pid, "net")
	return has&(1<<unix.CAP_NET_ADMIN) != 0 && net != 0 && net == h.net
}
