//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	kernel "github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/drops"
)

// dropped has a SYN dropped in a network namespace of its own, and wants the dropper's name.
func dropped(dropper func(device int) (io.Closer, error), named func(event.Drop) bool) func(*scene) error {
	return func(s *scene) error {
		if byConnector(s.options) {
			return errors.New("no probe")
		}
		ended := make(chan error)
		go func() {
			runtime.LockOSThread() // the namespace ends with the thread
			ended <- dropOwn(dropper, named)
		}()
		return <-ended
	}
}

func byXDP(device int) (io.Closer, error) {
	const drop = 1 // XDP_DROP
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "drop_all", Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, drop), asm.Return()},
	})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return link.AttachXDP(link.XDPOptions{Program: p, Interface: device, Flags: link.XDPGenericMode})
}

func namesXDP(d event.Drop) bool {
	return d.Program == "drop_all" && d.ProgramID != 0 && d.Device == "lo"
}

// byChain loads nf_tables, if it is a module, while drops are watched.
func byChain(int) (io.Closer, error) {
	modules, _ := filepath.Glob("/modules/*.ko")
	for _, module := range modules {
		if err := load(module); err != nil {
			return nil, err
		}
	}
	c, err := nftables.New()
	if err != nil {
		return nil, err
	}
	policy := nftables.ChainPolicyDrop
	c.AddChain(&nftables.Chain{
		Table: c.AddTable(&nftables.Table{Name: "policy", Family: nftables.TableFamilyINet}), Name: "incoming",
		Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityFilter, Policy: &policy,
	})
	return io.NopCloser(nil), c.Flush()
}

func load(module string) error {
	f, err := os.Open(module)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("loading %s: %w", module, err)
	}
	return nil
}

func namesChain(d event.Drop) bool {
	version, err := kernel.LinuxVersionCode()
	frees := version >= 6<<16|7<<8 // nftables does
	return err == nil && strings.HasPrefix(d.Place, "nft_do_chain") == frees && d.Hook == "input" &&
		slices.Equal(d.Chains, []event.Chain{{Backend: "nftables", Family: "inet", Table: "policy", Name: "incoming"}})
}

func dropOwn(dropper func(device int) (io.Closer, error), named func(event.Drop) bool) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return err
	}
	var is unix.Stat_t
	if err := unix.Stat(fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid()), &is); err != nil {
		return err
	}
	w, err := drops.Open(uint32(is.Ino))
	if err != nil {
		return err
	}
	defer w.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go w.Run(ctx)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return err
	}
	own := event.Namespace{Key: strconv.FormatUint(cookie, 10)}
	w.Follow(own, []string{"127.0.0.1"}, clock.Monotonic()+int64(time.Hour))
	on, err := dropper(lo.Attrs().Index)
	if err != nil {
		return err
	}
	defer on.Close()
	peer := &unix.SockaddrInet4{Port: 9, Addr: [4]byte(net.IPv4(127, 0, 0, 1).To4())}
	if err := unix.Connect(fd, peer); !errors.Is(err, unix.EINPROGRESS) {
		return fmt.Errorf("connecting: %w", err)
	}
	var seen []event.Drop
	for range 300 {
		if seen = w.Seen(own); len(seen) > 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if len(seen) != 1 || seen[0].Peer != "127.0.0.1:9" || !named(seen[0]) {
		return fmt.Errorf("%+v", seen)
	}
	return nil
}
