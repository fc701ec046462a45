//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/drops"
)

// droppedPackets has an XDP program drop a SYN in a network namespace of its own, and wants its name.
func droppedPackets(s *scene) error {
	if byConnector(s.options) {
		return errors.New("no probe")
	}
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // the namespace ends with the thread
		ended <- dropOwn()
	}()
	return <-ended
}

func dropOwn() error {
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
	const drop = 1 // XDP_DROP
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "drop_all", Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, drop), asm.Return()},
	})
	if err != nil {
		return err
	}
	defer p.Close()
	on, err := link.AttachXDP(link.XDPOptions{Program: p, Interface: lo.Attrs().Index, Flags: link.XDPGenericMode})
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
	if len(seen) != 1 || seen[0].Program != "drop_all" || seen[0].ProgramID == 0 || seen[0].Peer != "127.0.0.1:9" || seen[0].Device != "lo" {
		return fmt.Errorf("%+v", seen)
	}
	return nil
}
