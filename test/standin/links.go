//go:build linux

package standin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

func (a *agent) asks(c *cniCall, name string, do func() error) error {
	return a.during(Entry{Container: c.container, What: "request", Name: name}, do)
}

// connect creates the pod's interface pair with its address. It uses the host end's index, not its name.
func (a *agent) connect(c *cniCall, leased []byte) error {
	pod, err := netns.GetFromPath(c.netns)
	if err != nil {
		return err
	}
	defer pod.Close()
	host, err := netns.Get()
	if err != nil {
		return err
	}
	defer host.Close()
	inside, err := netlink.NewHandleAt(pod)
	if err != nil {
		return err
	}
	defer inside.Close()
	veth := netlink.NewVeth(netlink.LinkAttrs{Name: c.ifname, MTU: 1450})
	veth.PeerName, veth.PeerNamespace = c.port, netlink.NsFd(host)
	if err := a.asks(c, c.port, func() error { return inside.LinkAdd(veth) }); err != nil {
		return fmt.Errorf("create the pod's interface: %w", err)
	}
	made, err := inside.LinkByName(c.ifname)
	if err != nil {
		return err
	}
	index := made.Attrs().ParentIndex
	a.mu.Lock()
	a.links[c.container] = index
	a.mu.Unlock()
	if err := a.asks(c, c.port, func() error { return netlink.LinkSetUp(byIndex(index)) }); err != nil {
		return fmt.Errorf("set the host's end up: %w", err)
	}
	var result struct{ IPs []struct{ Address string } }
	if err := json.Unmarshal(leased, &result); err != nil || len(result.IPs) == 0 {
		return fmt.Errorf("no address of the IPAM plugin: %w", err)
	}
	address, err := netlink.ParseAddr(result.IPs[0].Address)
	if err != nil {
		return err
	}
	return a.asks(c, c.ifname, func() error {
		return errors.Join(inside.AddrAdd(made, address), inside.LinkSetUp(made))
	})
}

// byIndex returns a link with only an index.
func byIndex(index int) netlink.Link {
	return &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: index}}
}

func (a *agent) disconnect(c *cniCall) error {
	a.mu.Lock()
	index := a.links[c.container]
	delete(a.links, c.container)
	a.mu.Unlock()
	if index == 0 {
		return nil
	}
	err := a.asks(c, c.port, func() error { return netlink.LinkDel(byIndex(index)) })
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EINVAL) { // already gone with the pod
		return nil
	}
	return err
}

func touchLink(container string) error {
	link, err := netlink.LinkByName(PortOf(container))
	if err != nil {
		return err
	}
	return netlink.LinkSetMTU(byIndex(link.Attrs().Index), 1400)
}

// lease is the IPAM plugin: sequential addresses under a lock.
func lease() error {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var conf settings
	if err := json.Unmarshal(text, &conf); err != nil {
		return err
	}
	if os.Getenv("CNI_COMMAND") != "ADD" {
		return nil
	}
	j, err := openJournal(IPAM)
	if err != nil {
		return err
	}
	s := &stage{journal: j} // without a test to ask
	if err := s.at("ipam.begin", conf.Inject, os.Getenv("CNI_CONTAINERID")); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(os.Getenv(dirKey), "leases"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if _, err := f.WriteString("\n"); err != nil {
		return err
	}
	number := info.Size() + 2
	fmt.Printf(`{"cniVersion":"1.0.0","ips":[{"address":"100.97.%d.%d/16"}]}`, number/250, number%250+2)
	return nil
}

// holdRtnl makes the kernel read the size for ETHTOOL_GFEATURES from a missing page under rtnl
// (net/ethtool/ioctl.c).
func holdRtnl() error {
	length, err := time.ParseDuration(os.Args[1])
	if err != nil {
		return err
	}
	page := os.Getpagesize()
	pages, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	faults, err := userfault(pages[page:])
	if err != nil {
		return err
	}
	const getFeatures = 0x3a // include/uapi/linux/ethtool.h
	*(*uint32)(unsafe.Pointer(&pages[page-4])) = getFeatures
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&pages[page-4])}
	copy(request.name[:], "lo")
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))) // the result does not matter
	}()
	if _, err := unix.Read(faults, make([]byte, 32)); err != nil { // struct uffd_msg: the lock is held
		return err
	}
	fmt.Println("held")
	time.Sleep(length)
	zero := [4]uint64{uint64(uintptr(unsafe.Pointer(&pages[page]))), uint64(page)} // struct uffdio_zeropage
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(faults), 0xc020aa04, uintptr(unsafe.Pointer(&zero))); errno != 0 {
		return errno
	}
	<-done
	return nil
}

// userfault returns the descriptor for faults of these pages (userfaultfd(2)).
func userfault(pages []byte) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if errno != 0 {
		return 0, fmt.Errorf("userfaultfd: %w", errno)
	}
	api := [3]uint64{0xaa} // struct uffdio_api
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, 0xc018aa3f, uintptr(unsafe.Pointer(&api))); errno != 0 {
		return 0, fmt.Errorf("UFFDIO_API: %w", errno)
	}
	missing := [4]uint64{uint64(uintptr(unsafe.Pointer(&pages[0]))), uint64(len(pages)), 1} // struct uffdio_register
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, 0xc020aa00, uintptr(unsafe.Pointer(&missing))); errno != 0 {
		return 0, fmt.Errorf("UFFDIO_REGISTER: %w", errno)
	}
	return int(fd), nil
}
