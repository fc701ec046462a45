package probe

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/cilium/ebpf"
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/event"
)

// initialUserNamespace is PROC_USER_INIT_INO (include/linux/proc_ns.h).
const initialUserNamespace = 0xEFFFFFFD

// hostNamespaces are those of the first process of our PID namespace, by inode; 0 where one
// is not known, and then nobody is in it. The kernel side looks for itself.
type hostNamespaces struct{ mnt, net uint32 }

// hostOf reads them of the first of processes that may be looked into. Whoever shares our own
// has either the host's, too, or is part of cniscope's container.
func hostOf(processes ...string) (h hostNamespaces) {
	for _, dir := range processes {
		var errs [2]error
		h.mnt, errs[0] = inodeOf(dir + "/ns/mnt")
		h.net, errs[1] = inodeOf(dir + "/ns/net")
		if errors.Join(errs[:]...) == nil {
			break
		}
	}
	return h
}

func inodeOf(file string) (uint32, error) {
	info, err := os.Stat(file)
	if err != nil {
		return 0, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, fmt.Errorf("no inode number in %T", info.Sys())
	}
	return uint32(stat.Ino), nil
}

// beliefs sets what decides who is believed (bpf/believe.h).
func (p *Probe) beliefs(spec *ebpf.CollectionSpec) error {
	var rootless uint32
	if p.options.Rootless {
		rootless = 1
	}
	return errors.Join(
		spec.Variables["rootless"].Set(rootless),
		spec.Variables["share_max"].Set(uint32(p.options.Processes/2)),
	)
}

// watchAnchors keeps the kernel side's table of the runtime's processes.
func (p *Probe) watchAnchors() {
	if p.options.Anchors == nil {
		return
	}
	p.unwatch = p.options.Anchors.Watch(p.anchor)
}

// anchor hands the anchors to the kernel side: who is new first, so that one that stays is
// never missing.
func (p *Probe) anchor(anchors []anchor.Anchor) {
	now := map[uint32]bool{}
	for _, a := range anchors {
		entry := bpfAnchor{Start: uint64(a.Start) / (1e9 / ticksPerSecond)}
		if a.Rootless {
			entry.Rootless = 1
		}
		if err := p.objects.Anchors.Put(uint32(a.PID), entry); err != nil {
			p.options.Log.Warn("a process of the runtime is not known to the kernel side", "anchor", a, "error", err)
			continue
		}
		now[uint32(a.PID)] = true
	}
	removeFrom(p.objects.Anchors, func(pid uint32, _ *bpfAnchor) bool { return !now[pid] })
	var known uint32
	if len(now) > 0 {
		known = 1
	}
	_ = p.objects.Beliefs.Put(uint32(bpfBeliefANCHORED), known)
}

// hasShare tells whether a process counts against the share of what is believed without an
// anchor.
func hasShare(p *bpfProcess) bool { return bpfCaller(p.Caller) >= bpfCallerCALLER_HOST }

// giveShareBack says that the reader took such a process out of the table, takeShare that it
// put one in. Only the reader calls them: the kernel side counts for itself.
func (p *Probe) giveShareBack() { p.shareLeft(+1) }
func (p *Probe) takeShare()     { p.shareLeft(-1) }

func (p *Probe) shareLeft(by int32) {
	p.left += by
	_ = p.objects.Beliefs.Put(uint32(bpfBeliefSHARE_LEFT), uint32(p.left))
}

func callerOf(c bpfCaller) event.Caller {
	switch c {
	case bpfCallerCALLER_RUNTIME:
		return event.CallerRuntime
	case bpfCallerCALLER_AGENT:
		return event.CallerAgent
	case bpfCallerCALLER_HOST:
		return event.CallerHost
	case bpfCallerCALLER_PRIVILEGED:
		return event.CallerPrivileged
	case bpfCallerCALLER_ROOTLESS:
		return event.CallerRootless
	}
	return ""
}

// caller is caller_of of bpf/believe.h, read from /proc of a process that began before the
// probe. Agents are not known then.
func (p *Probe) caller(pid uint32) bpfCaller {
	dir := fmt.Sprintf("/proc/%d/", pid)
	has := rights(dir)
	forker := p.forkedBy(pid)
	mnt, _ := inodeOf(dir + "ns/mnt")
	switch {
	case forker != nil && has != 0:
		return bpfCallerCALLER_RUNTIME
	case has != 0 && mnt != 0 && mnt == p.host.mnt:
		return bpfCallerCALLER_HOST
	case has&(1<<unix.CAP_SYS_ADMIN) != 0 && len(p.runtime()) == 0:
		return bpfCallerCALLER_PRIVILEGED
	case p.options.Rootless && forker != nil && forker.Rootless && runRootless(dir, forker):
		return bpfCallerCALLER_ROOTLESS
	}
	return bpfCallerCALLER_NOBODY
}

func (p *Probe) runtime() []anchor.Anchor {
	if p.options.Anchors == nil {
		return nil
	}
	return p.options.Anchors.List()
}

// forkedBy is the anchor that forked the process; nil if none did.
func (p *Probe) forkedBy(pid uint32) *anchor.Anchor {
	child, err := statOf(int(pid))
	if err != nil {
		return nil
	}
	for _, a := range p.runtime() {
		if a.PID != child.PPID || !a.Alive() {
			continue
		}
		parent, err := statOf(a.PID)
		if err != nil || parent.Session != child.Session {
			return nil
		}
		one, _ := inodeOf(fmt.Sprintf("/proc/%d/ns/pid", pid))
		other, _ := inodeOf(fmt.Sprintf("/proc/%d/ns/pid", a.PID))
		if one == 0 || one != other {
			return nil
		}
		return &a
	}
	return nil
}

func statOf(pid int) (procfs.ProcStat, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return p.Stat()
}

func runRootless(dir string, forker *anchor.Anchor) bool {
	one, _ := inodeOf(dir + "ns/user")
	other, _ := inodeOf(fmt.Sprintf("/proc/%d/ns/user", forker.PID))
	return one != 0 && one == other && capabilities(dir, "CapEff")&either != 0
}

const either = 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_SYS_ADMIN

// rights is what bpf/task.h says, read from /proc: which of the two rights the process has
// on the node, and its caller had, too.
func rights(dir string) uint64 {
	if ns, err := inodeOf(dir + "ns/user"); err != nil || ns != initialUserNamespace {
		return 0
	}
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		return 0
	}
	return ownRights(string(status))
}

// privilegedHere is privileged_on_node of bpf/task.h.
func (h hostNamespaces) privilegedHere(dir string) bool {
	if ns, err := inodeOf(dir + "ns/user"); err != nil || ns != initialUserNamespace {
		return false
	}
	caps := capabilities(dir, "CapEff")
	if caps&(1<<unix.CAP_SYS_ADMIN) != 0 {
		return true
	}
	net, _ := inodeOf(dir + "ns/net")
	return caps&(1<<unix.CAP_NET_ADMIN) != 0 && net != 0 && net == h.net
}

// ownRights reads from /proc/PID/status (proc(5)) by which rights that its caller had, too,
// the process may change a node's network.
func ownRights(status string) uint64 {
	caps := capabilitySet(status, "CapEff")
	if !strings.HasPrefix(field(status, "Uid"), "0\t") { // the real one comes first
		caps &= capabilitySet(status, "CapAmb")
	}
	return caps & either
}

func capabilities(dir, set string) uint64 {
	status, _ := os.ReadFile(dir + "status")
	return capabilitySet(string(status), set)
}

func capabilitySet(status, set string) uint64 {
	caps, err := strconv.ParseUint(field(status, set), 16, 64)
	if err != nil {
		return 0
	}
	return caps
}

func field(status, name string) string {
	_, rest, _ := strings.Cut(status, "\n"+name+":\t")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}
