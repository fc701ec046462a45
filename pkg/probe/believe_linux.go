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
	mnt, err1 := procfs.Namespace(1, "mnt")
	net, err2 := procfs.Namespace(1, "net")
	if err1 != nil || err2 != nil {
		mnt, _ = procfs.OwnNamespace("mnt")
		net, _ = procfs.OwnNamespace("net")
	}
	return hostNamespaces{mnt: mnt, net: net}
}

// caller tells why a process that began before the probe is believed, as far as /proc tells. The
// decision is caller_of's in bpf/believe.h: this one finds the calls that were under way when it
// began to be asked, and the tests of belief compare both. Agents are not known then.
func (p *Probe) caller(pid uint32) kernel.LifeCaller {
	has := rights(int(pid))
	forker := p.forkedBy(pid)
	mnt, _ := procfs.Namespace(int(pid), "mnt")
	switch {
	case forker != nil && has != 0:
		return kernel.LifeCallerCALLER_RUNTIME
	case has != 0 && mnt != 0 && mnt == p.host.mnt:
		return kernel.LifeCallerCALLER_HOST
	case has&(1<<unix.CAP_SYS_ADMIN) != 0 && len(p.runtime()) == 0:
		return kernel.LifeCallerCALLER_PRIVILEGED
	case p.options.Rootless && forker != nil && forker.Rootless && runRootless(int(pid), forker):
		return kernel.LifeCallerCALLER_ROOTLESS
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
		if err != nil || parent.Session != child.Session {
			return nil
		}
		one, _ := procfs.Namespace(int(pid), "pid")
		other, _ := procfs.Namespace(a.PID, "pid")
		if one == 0 || one != other {
			return nil
		}
		return &a
	}
	return nil
}

func runRootless(pid int, forker *anchor.Anchor) bool {
	one, _ := procfs.Namespace(pid, "user")
	other, _ := procfs.Namespace(forker.PID, "user")
	status, err := procfs.StatusOf(pid)
	return one != 0 && one == other && err == nil && status.Effective&either != 0
}

const either = 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_SYS_ADMIN

// rights is what bpf/task.h says, read from /proc: which of the two rights the process has
// on the node, and its caller had, too.
func rights(pid int) uint64 {
	if ns, err := procfs.Namespace(pid, "user"); err != nil || ns != procfs.InitialUser {
		return 0
	}
	status, err := procfs.StatusOf(pid)
	if err != nil {
		return 0
	}
	return ownRights(status)
}

// privilegedHere is privileged_on_node of bpf/task.h.
func (h hostNamespaces) privilegedHere(pid int) bool {
	if ns, err := procfs.Namespace(pid, "user"); err != nil || ns != procfs.InitialUser {
		return false
	}
	status, err := procfs.StatusOf(pid)
	if err != nil {
		return false
	}
	if status.Effective&(1<<unix.CAP_SYS_ADMIN) != 0 {
		return true
	}
	net, _ := procfs.Namespace(pid, "net")
	return status.Effective&(1<<unix.CAP_NET_ADMIN) != 0 && net != 0 && net == h.net
}

// ownRights are those rights by which the process may change a node's network, and that its
// caller had, too.
func ownRights(s procfs.Status) uint64 {
	if s.UID != 0 {
		s.Effective &= s.Ambient
	}
	return s.Effective & either
}

// networkOf is the inode number of the network namespace that a process is in; 0 if that
// cannot be asked.
func networkOf(pid uint32) uint32 {
	inode, _ := procfs.Namespace(int(pid), "net")
	return inode
}
