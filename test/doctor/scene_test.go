//go:build linux

package doctor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/cniscope/cniscope/test/harness"
)

// scene is a network namespace and a cgroup, in which doctor and the faults run.
type scene struct {
	*node
	netns, cgroup string
	uplink        int
}

type part func(*scene)

func newScene(t *testing.T, n *node) *scene {
	t.Helper()
	mine := *n
	mine.T = t
	name := fmt.Sprintf("cniscope-doctor-%d", os.Getpid())
	s := &scene{node: &mine, netns: "/run/netns/" + name, cgroup: filepath.Join(harness.Unified(t), name)}
	s.run("ip", "netns", "add", name)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	s.inside("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0-peer")
	s.within(func() error {
		l, err := netlink.LinkByName("eth0")
		if err == nil {
			s.uplink = l.Attrs().Index
		}
		return err
	})
	harness.Check(t, os.Mkdir(s.cgroup, 0o755))
	t.Cleanup(func() { harness.Check(t, os.Remove(s.cgroup)) })
	enter := fmt.Sprintf("echo $$ > %s/cgroup.procs && exec \"$@\"", s.cgroup)
	mine.around = []string{"nsenter", "--net=" + s.netns, "sh", "-c", enter, "sh"}
	return s
}

func (s *scene) inside(command ...string) {
	s.Helper()
	s.run(append([]string{"nsenter", "--net=" + s.netns}, command...)...)
}

func (s *scene) within(do func() error) {
	s.Helper()
	harness.Check(s.T, harness.Within(s.netns, do))
}

func (s *scene) program(name string, kind ebpf.ProgramType, attach ebpf.AttachType, verdict int32) *ebpf.Program {
	s.Helper()
	p := harness.Must(ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: name, Type: kind, AttachType: attach, License: "Apache-2.0",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, verdict), asm.Return()},
	}))(s)
	s.Cleanup(func() { _ = p.Close() })
	return p
}

func (s *scene) services(nodePorts int) {
	s.Helper()
	m := harness.Must(ebpf.NewMap(&ebpf.MapSpec{Name: "cilium_lb4_services_v2", Type: ebpf.Hash, KeySize: 12, ValueSize: 12, MaxEntries: 16}))(s)
	s.Cleanup(func() { _ = m.Close() })
	for i := range 2 {
		key, value := make([]byte, 12), make([]byte, 12)
		key[0] = byte(i)
		if i < nodePorts {
			value[8] = 1 << 1
		}
		harness.Check(s.T, m.Put(key, value))
	}
}

// socketLB is the load balancing of a full replacement, socketsOnly that of bpf-lb-sock beside kube-proxy.
func socketLB(s *scene)    { s.onSockets(1) }
func socketsOnly(s *scene) { s.onSockets(0) }

func (s *scene) onSockets(nodePorts int) {
	s.Helper()
	p := s.program("cil_sock4_connect", ebpf.CGroupSockAddr, ebpf.AttachCGroupInet4Connect, 1)
	l := harness.Must(link.AttachCgroup(link.CgroupOptions{Path: s.cgroup, Attach: ebpf.AttachCGroupInet4Connect, Program: p}))(s)
	s.Cleanup(func() { _ = l.Close() })
	s.services(nodePorts)
}

func nodePorts(s *scene) {
	s.fromNetdev()
	s.services(1)
}

// ciliumWithout is Cilium by default: a program on the interface, and ClusterIPs in the service map for pods.
func ciliumWithout(s *scene) {
	s.start("cilium-agent", "nsenter", "--net="+s.netns, s.named("cilium-agent"), "600")
	s.fromNetdev()
	s.services(0)
}

func (s *scene) fromNetdev() {
	s.Helper()
	p := s.program("cil_from_netdev", ebpf.SchedCLS, ebpf.AttachNone, -1) // TCX_NEXT
	s.within(func() error {
		l, err := link.AttachTCX(link.TCXOptions{Interface: s.uplink, Program: p, Attach: ebpf.AttachTCXIngress})
		if err == nil {
			s.Cleanup(func() { _ = l.Close() })
		}
		return err
	})
}
