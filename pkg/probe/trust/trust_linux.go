// Package trust decides from /proc why a process is trusted (docs/trust.md), as caller_of in
// pkg/probe/kernel/bpf/believe.h does.
package trust

import (
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// Node has the runtime and the host's namespaces.
type Node struct {
	anchors  *anchor.Set
	rootless bool
	// inode numbers of PID 1's namespaces; 0 if unknown
	mnt, net uint32
}

// NewNode uses our own namespaces if PID 1's are unreadable: then others in them are on the host, or in our
// container. anchors may be nil.
func NewNode(anchors *anchor.Set, rootless bool) Node {
	n := Node{anchors: anchors, rootless: rootless, mnt: Namespace(1, "mnt"), net: Namespace(1, "net")}
	if n.mnt == 0 || n.net == 0 {
		n.mnt, _ = procfs.OwnNamespace("mnt")
		n.net, _ = procfs.OwnNamespace("net")
	}
	return n
}

// Namespaces returns inode numbers; 0 if unknown.
func (n Node) Namespaces() (mnt, net uint32) { return n.mnt, n.net }

// Namespace returns an inode number; 0 if unknown.
func Namespace(pid uint32, kind string) uint32 {
	inode, _ := procfs.Namespace(int(pid), kind)
	return inode
}

func sameNamespace(one, other uint32, kind string) bool {
	inode := Namespace(one, kind)
	return inode != 0 && inode == Namespace(other, kind)
}

// Caller returns why a process is trusted; may be empty. It does not know agents.
func (n Node) Caller(pid uint32) event.Caller {
	status := statusOnNode(pid)
	has := Own(status)
	forker := n.forkedBy(pid)
	mnt := Namespace(pid, "mnt")
	switch {
	case forker != nil && has != 0:
		return event.CallerRuntime
	// a service user with CAP_NET_ADMIN could not change cniscope
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

// Runtime reports whether this PID is now the container runtime's.
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

// statusOnNode has no rights for a process in another user namespace.
func statusOnNode(pid uint32) procfs.Status {
	if Namespace(pid, "user") == procfs.InitialUser {
		if status, err := procfs.StatusOf(int(pid)); err == nil {
			return status
		}
	}
	return procfs.Status{}
}

// Rights returns the Own rights of a process on the node (bpf/task.h).
func Rights(pid uint32) uint64 { return Own(statusOnNode(pid)) }

// Own returns network rights that the caller also had.
func Own(s procfs.Status) uint64 {
	if s.UID != 0 {
		s.Effective &= s.Ambient
	}
	return s.Effective & either
}

// PrivilegedHere is privileged_on_node of bpf/task.h.
func (n Node) PrivilegedHere(pid uint32) bool {
	has := statusOnNode(pid).Effective
	if has&(1<<unix.CAP_SYS_ADMIN) != 0 {
		return true
	}
	net := Namespace(pid, "net")
	return has&(1<<unix.CAP_NET_ADMIN) != 0 && net != 0 && net == n.net
}
