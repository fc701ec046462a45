// Package trust tells from /proc why a process is believed to be a CNI plugin: docs/trust.md. Where BPF
// programs run they decide that themselves (caller_of in pkg/probe/kernel/bpf/believe.h), by the same rules.
package trust

import (
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// Node is what the decision depends on: who the runtime is, and what the host's namespaces are.
type Node struct {
	anchors  *anchor.Set
	rootless bool
	// mnt and net are those of the first process of our PID namespace, by inode; 0 where one is not
	// known, and then nobody is in it.
	mnt, net uint32
}

// NewNode reads the namespaces of the first process or, where it may not be looked into, our own: whoever
// shares ours is in the host's, too, or part of cniscope's container. anchors may be nil; rootless:
// what a runtime in a user namespace runs is believed, too.
func NewNode(anchors *anchor.Set, rootless bool) Node {
	n := Node{anchors: anchors, rootless: rootless, mnt: Namespace(1, "mnt"), net: Namespace(1, "net")}
	if n.mnt == 0 || n.net == 0 {
		n.mnt, _ = procfs.OwnNamespace("mnt")
		n.net, _ = procfs.OwnNamespace("net")
	}
	return n
}

// Namespaces are the host's, of mounts and of network, by inode number; 0 where one is not known.
func (n Node) Namespaces() (mnt, net uint32) { return n.mnt, n.net }

// Namespace is the inode number of the namespace of a kind that a process is in; 0, which is
// nobody's, if that cannot be asked.
func Namespace(pid uint32, kind string) uint32 {
	inode, _ := procfs.Namespace(int(pid), kind)
	return inode
}

// Host reports whether a link in /proc/PID/ns names the host's mount namespace.
func (n Node) Host(link string) bool {
	return n.mnt != 0 && link == "mnt:["+strconv.FormatUint(uint64(n.mnt), 10)+"]"
}

// sameNamespace reports whether two processes are in one namespace of a kind.
func sameNamespace(one, other uint32, kind string) bool {
	inode := Namespace(one, kind)
	return inode != 0 && inode == Namespace(other, kind)
}

// Caller tells why a process is believed, as far as /proc tells; empty where it is not. Agents are not
// known to it.
func (n Node) Caller(pid uint32) event.Caller {
	status := statusOnNode(pid)
	has := Own(status)
	forker := n.forkedBy(pid)
	mnt := Namespace(pid, "mnt")
	switch {
	case forker != nil && has != 0:
		return event.CallerRuntime
	// A service user with an ambient CAP_NET_ADMIN could not change cniscope.
	case has != 0 && mnt != 0 && mnt == n.mnt && (status.UID == 0 || has&(1<<unix.CAP_SYS_ADMIN) != 0):
		return event.CallerHost
	case has&(1<<unix.CAP_SYS_ADMIN) != 0 && len(n.runtime()) == 0:
		return event.CallerPrivileged
	case n.rootless && forker != nil && forker.Rootless && sameNamespace(pid, uint32(forker.PID), "user"):
		if status, err := procfs.StatusOf(int(pid)); err == nil && status.Effective&either != 0 {
			return event.CallerRootless
		}
	}
	return ""
}

// Runtime reports whether the process that has this PID now is the container runtime's.
func (n Node) Runtime(pid uint32) bool {
	for _, a := range n.runtime() {
		if a.PID == int(pid) {
			return a.Alive()
		}
	}
	return false
}

func (n Node) runtime() []anchor.Anchor {
	if n.anchors == nil {
		return nil
	}
	return n.anchors.List()
}

// forkedBy is the anchor that forked the process; nil if none did.
func (n Node) forkedBy(pid uint32) *anchor.Anchor {
	child, err := procfs.StatOf(int(pid))
	if err != nil {
		return nil
	}
	for _, a := range n.runtime() {
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
	if Namespace(pid, "user") == procfs.InitialUser {
		if status, err := procfs.StatusOf(int(pid)); err == nil {
			return status
		}
	}
	return procfs.Status{}
}

// Rights is what bpf/task.h says, read from /proc: the Own rights of a process on the node.
func Rights(pid uint32) uint64 { return Own(statusOnNode(pid)) }

// Own are those rights by which a process may change a node's network, and that its caller had, too.
func Own(s procfs.Status) uint64 {
	if s.UID != 0 {
		s.Effective &= s.Ambient
	}
	return s.Effective & either
}

// PrivilegedHere is privileged_on_node of bpf/task.h: whether what the process does may be evidence.
func (n Node) PrivilegedHere(pid uint32) bool {
	has := statusOnNode(pid).Effective
	if has&(1<<unix.CAP_SYS_ADMIN) != 0 {
		return true
	}
	net := Namespace(pid, "net")
	return has&(1<<unix.CAP_NET_ADMIN) != 0 && net != 0 && net == n.net
}
