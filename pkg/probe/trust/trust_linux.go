// Package trust decides from /proc whether and why a process is trusted as a CNI plugin (docs/trust.md). BPF programs
// decide by the same rules (caller_of in pkg/probe/kernel/bpf/believe.h).
package trust

import (
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// Node is the container runtime and the host's namespaces.
type Node struct {
	anchors  *anchor.Set
	rootless bool
	// mnt and net are inode numbers of the namespaces of PID 1; 0 if unknown, and then no process is in them.
	mnt, net uint32
}

// NewNode reads the namespaces of PID 1, or else our own: another process in them is on the host, or in cniscope's
// container. anchors may be nil; rootless trusts runtimes in user namespaces also.
func NewNode(anchors *anchor.Set, rootless bool) Node {
	n := Node{anchors: anchors, rootless: rootless, mnt: Namespace(1, "mnt"), net: Namespace(1, "net")}
	if n.mnt == 0 || n.net == 0 {
		n.mnt, _ = procfs.OwnNamespace("mnt")
		n.net, _ = procfs.OwnNamespace("net")
	}
	return n
}

// Namespaces returns the inode numbers of the host's mount and network namespace; 0 if unknown.
func (n Node) Namespaces() (mnt, net uint32) { return n.mnt, n.net }

// Namespace returns the inode number of a process's namespace, or 0, which no namespace has.
func Namespace(pid uint32, kind string) uint32 {
	inode, _ := procfs.Namespace(int(pid), kind)
	return inode
}

// Host reports whether a link in /proc/PID/ns names the host's mount namespace.
func (n Node) Host(link string) bool {
	return n.mnt != 0 && link == "mnt:["+strconv.FormatUint(uint64(n.mnt), 10)+"]"
}

func sameNamespace(one, other uint32, kind string) bool {
	inode := Namespace(one, kind)
	return inode != 0 && inode == Namespace(other, kind)
}

// Caller returns why a process is trusted, as far as /proc tells; empty if it is not. It does not know agents.
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

// forkedBy returns the anchor that forked the process; nil if there is none.
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

// statusOnNode returns a process's rights in the initial user namespace; none if it is in another one.
func statusOnNode(pid uint32) procfs.Status {
	if Namespace(pid, "user") == procfs.InitialUser {
		if status, err := procfs.StatusOf(int(pid)); err == nil {
			return status
		}
	}
	return procfs.Status{}
}

// Rights returns the Own rights of a process on the node, as bpf/task.h does.
func Rights(pid uint32) uint64 { return Own(statusOnNode(pid)) }

// Own returns the rights to change a node's network that the caller also had.
func Own(s procfs.Status) uint64 {
	if s.UID != 0 {
		s.Effective &= s.Ambient
	}
	return s.Effective & either
}

// PrivilegedHere is privileged_on_node of bpf/task.h: whether a process's actions may be evidence.
func (n Node) PrivilegedHere(pid uint32) bool {
	has := statusOnNode(pid).Effective
	if has&(1<<unix.CAP_SYS_ADMIN) != 0 {
		return true
	}
	net := Namespace(pid, "net")
	return has&(1<<unix.CAP_NET_ADMIN) != 0 && net != 0 && net == n.net
}
