package drops

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/test/harness"
)

// space is a network namespace.
type space struct {
	*testing.T
	path string
	event.Namespace
	inode uint32
}

func newSpace(t *testing.T) *space {
	s := &space{T: t}
	made, over := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // the namespace ends with the thread
		err := unix.Unshare(unix.CLONE_NEWNET)
		s.path = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
		made <- err
		<-over
	}()
	harness.Check(t, <-made)
	t.Cleanup(func() { close(over) })
	harness.Check(t, harness.Within(s.path, func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
		s.Key = strconv.FormatUint(cookie, 10)
		return err
	}))
	var is unix.Stat_t
	harness.Check(t, unix.Stat(s.path, &is))
	s.inode = uint32(is.Ino)
	s.run("ip link set lo up")
	return s
}

func (s *space) run(lines ...string) {
	s.Helper()
	if out, err := exec.Command("nsenter", "--net="+s.path, "sh", "-ec", strings.Join(lines, "\n")).CombinedOutput(); err != nil {
		s.Fatalf("%s: %v\n%s", lines, err, out)
	}
}

// join makes a veth pair between this namespace and another.
func (s *space) join(own string, to *space, other string, network int) {
	s.run(fmt.Sprintf("ip link add %s type veth peer name %s netns %s", own, other, to.path))
	for end, in := range map[string]*space{own: s, other: to} {
		host := 1
		if in == s {
			host = 2
		}
		in.batch(fmt.Sprintf("addr add 10.99.%d.%d/24 dev %s", network, host, end), fmt.Sprintf("addr add fd99:%d::%d/64 nodad dev %s", network, host, end),
			"link set "+end+" up")
	}
}

// scene is a pod and a server, joined by a node.
type scene struct {
	pod, node, server *space
	other, forger     *space
	all               bool // programs drop what neighbors ask, too
	*Watch
}

func newScene(t *testing.T) *scene {
	s := &scene{pod: newSpace(t), node: newSpace(t), server: newSpace(t)}
	s.pod.join("eth0", s.node, "pod", 0)
	s.server.join("eth0", s.node, "out", 1)
	for _, one := range []*space{s.pod, s.server} {
		network := map[*space]int{s.pod: 0, s.server: 1}[one]
		one.batch(fmt.Sprintf("route add default via 10.99.%d.1", network), fmt.Sprintf("route add default via fd99:%d::1", network))
	}
	s.node.run("sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.pod.rp_filter=0")
	for _, peer := range []string{"10.99.1.2:9", "[fd99:1::2]:9"} { // the neighbors know each other
		harness.Check(t, harness.Within(s.pod.path, func() error {
			if _, err := net.Dial("tcp", peer); !errors.Is(err, unix.ECONNREFUSED) {
				return fmt.Errorf("%s: %w", peer, err)
			}
			return nil
		}))
	}
	s.Watch = harness.Must(Open(s.node.inode))(t)
	t.Cleanup(s.Close)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go s.Run(ctx)
	s.Follow(s.pod.Namespace, []string{"10.99.0.2/24", "fd99:0::2"}, clock.Monotonic()+int64(time.Hour))
	return s
}

// program attaches a program that returns a number to an interface of the node.
func (s *scene) program(t ebpf.ProgramType, returns int32, device string, attach func(p *ebpf.Program, device int) (link.Link, error)) {
	if l := s.load(s.node, t, returns, device, attach); l != nil {
		s.node.Cleanup(func() { l.Close() })
	}
}

func (s *scene) load(in *space, t ebpf.ProgramType, returns int32, device string, attach func(p *ebpf.Program, device int) (link.Link, error)) (l link.Link) {
	// Only TCP, unless all. Ether types are as little-endian CPUs read them.
	const etherType, v4, v6, pass = 12, 14 + 9, 14 + 6, 2
	load, passes := func(at int32, size asm.Size) asm.Instruction { return asm.LoadMem(asm.R0, asm.R2, int16(at), size) }, int32(pass)
	drop := asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, 0, asm.Word), asm.LoadMem(asm.R3, asm.R1, 4, asm.Word),
		asm.Mov.Reg(asm.R4, asm.R2), asm.Add.Imm(asm.R4, v4+1), asm.JGT.Reg(asm.R4, asm.R3, "pass"),
	}
	ip, ip6 := int32(0x0008), int32(0xdd86)
	if t == ebpf.SchedCLS {
		load, passes, ip, ip6 = asm.LoadAbs, 0, unix.ETH_P_IP, unix.ETH_P_IPV6
		drop = asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}
	}
	drop = append(drop,
		load(etherType, asm.Half), asm.JEq.Imm(asm.R0, ip, "v4"), asm.JNE.Imm(asm.R0, ip6, "pass"),
		load(v6, asm.Byte), asm.JEq.Imm(asm.R0, unix.IPPROTO_TCP, "drop"), asm.Ja.Label("pass"),
		load(v4, asm.Byte).WithSymbol("v4"), asm.JEq.Imm(asm.R0, unix.IPPROTO_TCP, "drop"),
		asm.Mov.Imm(asm.R0, passes).WithSymbol("pass"), asm.Return(),
		asm.Mov.Imm(asm.R0, returns).WithSymbol("drop"), asm.Return(),
	)
	if s.all {
		drop = asm.Instructions{asm.Mov.Imm(asm.R0, returns), asm.Return()}
	}
	p := harness.Must(ebpf.NewProgram(&ebpf.ProgramSpec{Name: "drop_all", Type: t, License: "GPL", Instructions: drop}))(s.node)
	harness.Check(s.node, harness.Within(in.path, func() error {
		i, err := net.InterfaceByName(device)
		if err == nil {
			l, err = attach(p, i.Index)
		}
		return err
	}))
	return l
}

// filter attaches filters as before Linux 6.6.
func (s *scene) filter(device string, parent uint32, filters int, returns int32) {
	s.program(ebpf.SchedCLS, returns, device, func(p *ebpf.Program, i int) (link.Link, error) {
		on := netlink.QdiscAttrs{LinkIndex: i, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}
		if err := netlink.QdiscAdd(&netlink.Clsact{QdiscAttrs: on}); err != nil {
			return nil, err
		}
		for n := range filters {
			if err := netlink.FilterAdd(&netlink.BpfFilter{
				FilterAttrs: netlink.FilterAttrs{LinkIndex: i, Parent: parent, Protocol: unix.ETH_P_ALL, Priority: uint16(1 + n)},
				Fd:          p.FD(), Name: "drop_all", DirectAction: true,
			}); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
}

func (s *scene) xdp(device string, mode link.XDPAttachFlags) {
	const drop = 1 // XDP_DROP
	s.program(ebpf.XDP, drop, device, func(p *ebpf.Program, i int) (link.Link, error) {
		return link.AttachXDP(link.XDPOptions{Interface: i, Program: p, Flags: mode})
	})
}

// fillConnections fills the table of connections with ones that are not dropped for new ones.
func (s *space) fillConnections() {
	limit := harness.Must(os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_max"))(s)
	n := harness.Must(strconv.Atoi(strings.TrimSpace(string(limit))))(s)
	attribute := func(kind int, value ...byte) []byte {
		b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
		b = append(binary.NativeEndian.AppendUint16(b, uint16(kind)), value...)
		return append(b, make([]byte, -len(b)&3)...)
	}
	const nested = unix.NLA_F_NESTED
	tuple := func(kind int, from, to, port, other uint32) []byte {
		ip := slices.Concat(attribute(1, binary.BigEndian.AppendUint32(nil, from)...), attribute(2, binary.BigEndian.AppendUint32(nil, to)...))
		ports := slices.Concat(attribute(1, unix.IPPROTO_UDP), attribute(2, byte(port>>8), byte(port)), attribute(3, byte(other>>8), byte(other)))
		return attribute(nested|kind, slices.Concat(attribute(nested|1, ip...), attribute(nested|2, ports...))...)
	}
	create := func(i uint32) []byte {
		a, b, port := 0x0a000000+i>>15, uint32(0x0b000001), 1+i&0x7fff
		body := slices.Concat([]byte{unix.AF_INET, 0, 0, 0}, tuple(1, a, b, port, 9), tuple(2, b, a, 9, port),
			attribute(3, 0, 0, 0, 2|4|8), attribute(7, 0, 0, 2, 0)) // seen, assured, confirmed; 512 s
		head := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
		head = binary.NativeEndian.AppendUint16(head, 1<<8) // IPCTNL_MSG_CT_NEW
		head = binary.NativeEndian.AppendUint16(head, unix.NLM_F_REQUEST|unix.NLM_F_CREATE)
		return slices.Concat(head, make([]byte, 8), body)
	}
	harness.Check(s, harness.Within(s.path, func() error {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for i := 0; i <= n; {
			var batch []byte
			for range 256 {
				batch = append(batch, create(uint32(i))...)
				i++
			}
			if err := unix.Sendto(fd, batch, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
				return err
			}
		}
		return nil
	}))
}

// What TestManyPodsAreToldWhoDroppedTheirPackets has no kind of.
func TestWhoDroppedIt(t *testing.T) {
	harness.Root(t)
	harness.Slow(t)
	const (
		v4, v6, dns4, dns6 = "10.99.1.2:80", "[fd99:1::2]:80", "10.99.1.2:53", "[fd99:1::2]:53"
		filter             = "add table inet np; add chain inet np fw { type filter hook forward priority 0; policy accept; }; "
	)
	node := func(lines ...string) func(*scene) { return func(s *scene) { s.node.run(lines...) } }
	cases := []struct {
		name, peer string
		cause      judge.LateCause
		says       string
		on         func(*scene)
	}{
		{"nft rule", v4, "filter", "nftables chain fw of table inet np dropped", node("nft '" + filter + "add chain inet np pod; add rule inet np pod tcp dport 80 drop; add rule inet np fw jump pod'")},
		{"nft rule in the pod", v6, "filter", ": nftables chain out of table inet np dropped", func(s *scene) {
			s.pod.run("nft 'add table inet np; add chain inet np out { type filter hook output priority 0; policy drop; }'")
		}},
		{"nft answers", v4, "filter", "from 10.99.1.2:80 on the node", node("nft '" + filter + "add rule inet np fw tcp sport 80 drop'")},
		{"nft DNS", dns4, "filter", "nftables chain fw of table inet np dropped", node("nft '" + filter + "add rule inet np fw udp dport 53 drop'")},
		{"nft in two families", v4, "filter", "nftables chain fw of table inet np dropped", node("iptables-nft -A FORWARD -j ACCEPT", "nft '"+filter+"add rule inet np fw tcp dport 80 drop'")},
		{"nft in two chains", v6, "filter", "nftables chain fw of table inet np or nftables chain late of table inet np dropped", node("nft '" + filter + "add rule inet np fw tcp dport 80 drop; add chain inet np late { type filter hook forward priority 1; }; add rule inet np late accept'")},
		{"nft beside an idle chain", v4, "filter", ": nftables chain fw of table inet np dropped", node("nft '" + filter + "add rule inet np fw tcp dport 80 drop; add chain inet np late { type filter hook forward priority 1; }'")},
		{"iptables-legacy, raw", v4, "filter", "iptables-legacy chain PREROUTING of table raw dropped", node("iptables-legacy -t raw -A PREROUTING -p tcp --dport 80 -j DROP")},
		{"gateway", v4, "arp", "no neighbor on eth0 answered, so the kernel dropped", func(s *scene) { s.node.run("ip link set pod arp off"); s.pod.run("ip neigh flush dev eth0") }},
		{"gateway, stolen", v4, "arp", "no neighbor on eth0 answered, or a BPF program on the way took", func(s *scene) {
			s.all = true
			s.filter("pod", netlink.HANDLE_MIN_INGRESS, 1, 4) // TC_ACT_STOLEN
			s.pod.run("ip neigh flush dev eth0")
		}},
		{"no route back", v4, "no_route", "there is no route, so the kernel dropped", node("ip route del 10.99.0.0/24 dev pod")},
		{"tc filter", v4, "program", "program drop_all (id ", func(s *scene) { s.filter("pod", netlink.HANDLE_MIN_INGRESS, 1, 2) }},
		{"tc filters, IPv6", v6, "program", "a program or filter at the tc egress of out dropped", func(s *scene) { s.filter("out", netlink.HANDLE_MIN_EGRESS, 2, 2) }},
		{"XDP, IPv6", v6, "program", ") on pod dropped", func(s *scene) { s.xdp("pod", link.XDPGenericMode) }},
	}
	var scenes []*scene
	for _, c := range cases {
		s := newScene(t)
		c.on(s)
		network := "tcp"
		if strings.HasSuffix(c.peer, ":53") {
			network = "udp"
			s.Asks(s.pod.Namespace)
		}
		s.pod.talk(t.Context(), network, c.peer)
		scenes = append(scenes, s)
	}
	for i, c := range cases {
		s := scenes[i]
		t.Run(c.name, func(t *testing.T) {
			harness.Eventually(t, func() error {
				late := model.Connected{Late: true, Tries: &event.Tries{SYNs: 1}, Drops: s.Seen(s.pod.Namespace)}
				v := judge.Connected(late)
				if v.Cause != judge.Cause(c.cause) || !strings.Contains(v.Says, c.says) {
					return fmt.Errorf("%s: %s of %+v", v.Cause, v.Says, late.Drops)
				}
				t.Log(v.Says)
				return nil
			})
		})
	}
}

// The limit is the machine's: it is 0 for as long as a few datagrams are sent.
func TestAFullTableOfNeighbors(t *testing.T) {
	harness.Root(t)
	harness.Slow(t)
	for version, peer := range map[int]string{4: "10.99.1.%d:53", 6: "[fd99:1::%d]:53"} {
		s := newScene(t)
		s.Asks(s.pod.Namespace)
		var all []net.Conn
		harness.Check(t, harness.Within(s.pod.path, func() error {
			for host := range 20 {
				c, err := net.Dial("udp", fmt.Sprintf(peer, 100+host))
				if err != nil {
					return err
				}
				t.Cleanup(func() { c.Close() })
				all = append(all, c)
			}
			return nil
		}))
		limit := fmt.Sprintf("/proc/sys/net/ipv%d/neigh/default/gc_thresh3", version)
		before := harness.Must(os.ReadFile(limit))(t)
		harness.Check(t, os.WriteFile(limit, []byte("0"), 0))
		for _, c := range all {
			_, _ = c.Write([]byte("query"))
		}
		harness.Check(t, os.WriteFile(limit, before, 0))
		v := judge.Connected(model.Connected{Late: true, Tries: &event.Tries{Asked: 1}, Drops: s.Seen(s.pod.Namespace)})
		if v.Cause != judge.Cause(judge.LateTable) || !v.Certain || !strings.Contains(v.Says, ": the table of neighbors is full, so the kernel dropped") {
			t.Errorf("IPv%d: %s", version, v.Says)
		}
	}
}

// Other pods' packets are not counted, though dropped by the same rule, nor those of a pod that took the address.
func TestOnlyThePodsOwnPacketsAreTold(t *testing.T) {
	harness.Root(t)
	harness.Programs(t, "nft")
	s := newScene(t)
	s.other, s.forger = newSpace(t), newSpace(t)
	s.other.join("eth0", s.node, "other", 2)
	s.other.run("ip route add default via 10.99.2.1")
	s.forger.join("eth0", newSpace(t), "far", 0)
	s.forger.run("ip route add default via 10.99.0.1")
	const drop = "nft 'add table inet np; add chain inet np out { type filter hook HOOK priority 0; policy drop; }'"
	s.node.run(strings.Replace(drop, "HOOK", "forward", 1))
	s.forger.run(strings.Replace(drop, "HOOK", "postrouting", 1))
	s.pod.talk(t.Context(), "tcp", "10.99.1.2:80")
	s.other.talk(t.Context(), "tcp", "10.99.1.2:81")
	s.forger.talk(t.Context(), "tcp", "10.99.1.2:82")
	harness.Eventually(t, func() error {
		seen := s.Seen(s.pod.Namespace)
		if len(seen) == 0 || seen[0].Count < 3 {
			return fmt.Errorf("%+v", seen)
		}
		return nil
	})
	seen := s.Seen(s.pod.Namespace)
	if len(seen) != 1 || seen[0].Peer != "10.99.1.2:80" {
		t.Errorf("%+v", seen)
	}
	if none := s.Seen(s.other.Namespace); len(none) != 0 {
		t.Errorf("of a pod that is not followed: %+v", none)
	}
}

// A pod that floods has no more room than others, and what it names on the way is cleaned.
func TestAPodThatFloods(t *testing.T) {
	harness.Root(t)
	harness.Slow(t)
	s := newScene(t)
	s.node.run("ip link set pod down", "ip link set pod name \"$(printf 'a\\033[1m;$(x)')\" up", "nft 'add table inet np; add chain inet np fw { type filter hook forward priority 0; policy drop; }'")
	for i := range 3 * most * most {
		s.pod.talk(t.Context(), "tcp", fmt.Sprintf("10.99.1.%d:%d", 2+i%100, 1+i))
	}
	count := func(m *ebpf.Map) (n int) {
		kernel.Each(m, func(*flow, *uint64) { n++ })
		return n
	}
	harness.Eventually(t, func() error {
		if n, seen := count(s.objects.Flows), s.Seen(s.pod.Namespace); n < 64 || len(seen) == 0 || seen[0].Count < 64 {
			return fmt.Errorf("%d flows, %+v", n, seen)
		}
		return nil
	})
	if n := count(s.objects.Flows); n > 64+2+runtime.NumCPU() { // and its two addresses
		t.Errorf("%d flows of one pod", n)
	}
	for _, d := range s.Seen(s.pod.Namespace) {
		if strings.Contains(d.Device, "\033") {
			t.Errorf("%q", d.Device)
		}
	}
	s.Forget(s.pod.Namespace)
	harness.Eventually(t, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if n := count(s.objects.Flows); n > 0 || s.drop != nil {
			return fmt.Errorf("%d flows, observed: %v", n, s.drop != nil)
		}
		return nil
	})
}

// 1024 pods that flood leave room for one another.
func TestAFloodTakesNoRoomFromOthers(t *testing.T) {
	harness.Root(t)
	w := harness.Must(Open(1))(t)
	t.Cleanup(w.Close)
	for i := range uint64(1024) {
		key := i + 1
		w.Follow(event.Namespace{Key: strconv.FormatUint(key, 10)}, []string{fmt.Sprintf("10.%d.%d.1", i>>8, i&255), "fd::" + strconv.FormatUint(key, 16)}, math.MaxInt64)
		harness.Check(t, w.objects.Pods.Update(key, pod{Flows: 64, Kinds: 16}, ebpf.UpdateExist))
		for i := range uint16(64) {
			harness.Check(t, w.objects.Flows.Update(flow{Address: [4]uint32{uint32(key)}, Port: i, Protocol: unix.IPPROTO_TCP}, key, ebpf.UpdateNoExist))
		}
		for i := range uint64(16) {
			harness.Check(t, w.objects.Drops.Update(drop{Pod: key, Place: i}, seen{Count: 1}, ebpf.UpdateNoExist))
		}
	}
	harness.Equal(t, len(w.Seen(event.Namespace{Key: "1024"})), most, "drops of the last pod")
	w.Forget(event.Namespace{Key: "1024"})
	harness.Equal(t, len(w.Seen(event.Namespace{Key: "1024"})), 0, "drops of a pod that is forgotten")
}

func TestDropsAreObservedOnlyWhileAPodWaits(t *testing.T) {
	harness.Root(t)
	w := harness.Must(Open(1))(t)
	t.Cleanup(w.Close)
	pod, now := event.Namespace{Key: "77"}, clock.Monotonic()
	observes := func(what string, want bool) {
		t.Helper()
		harness.Equal(t, w.drop != nil, want, what)
	}
	w.Asks(pod)
	observes("for a pod that is not followed", false)
	w.Follow(pod, []string{"10.0.0.1/24"}, now+int64(time.Minute))
	harness.Equal(t, w.tend(now), true, "it is followed")
	observes("for a pod that does not wait", false)
	w.Asks(pod)
	observes("for a pod that waits", true)
	w.tend(clock.Monotonic() + int64(5*time.Second))
	observes("5 s after", false)
	w.Asks(pod)
	w.Forget(pod)
	harness.Equal(t, w.tend(clock.Monotonic()), false, "any is followed")
	observes("once it is connected", false)
	w.Follow(pod, nil, now+1)
	w.tend(now + 2)
	harness.Equal(t, len(w.until), 0, "followed after their time")
	for _, m := range []*ebpf.Map{w.objects.Pods, w.objects.Flows, w.objects.Drops} {
		if key, err := m.NextKeyBytes(nil); err != nil || key != nil {
			t.Errorf("%s has %v, %v", m, key, err)
		}
	}
	w.Close()
	w.Follow(pod, nil, now)
	w.Asks(pod)
	w.Forget(pod)
	if w.objects.OnDrop != nil || w.tend(now) || w.Seen(pod) != nil {
		t.Error("programs are loaded after their end")
	}
}
