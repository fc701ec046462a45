package probe

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	wire "github.com/cniscope/cniscope/pkg/netlink"
	"github.com/cniscope/cniscope/test/harness"
)

// TestHelper is no test: it becomes a plugin for tests that need more than a shell.
func TestHelper(t *testing.T) {
	switch os.Getenv("HELP") {
	case "":
		t.Skip("helps others")
	case "dad":
		harness.Check(t, settle("veth7", netip.MustParsePrefix("fd09::5/64")))
	case "mount":
		dir := t.TempDir()
		for _, err := range []error{
			unix.Mount("/proc/self/ns/nothing", dir, "", unix.MS_BIND|unix.MS_RDONLY, ""),
			unix.Mount("tmpfs", dir+"/nowhere", "tmpfs", 0, "size=4711"), unix.Unmount(dir, unix.MNT_DETACH),
		} {
			if err == nil {
				t.Fatal("it could be mounted")
			}
		}
		if err := unix.MoveMount(unix.AT_FDCWD, dir, unix.AT_FDCWD, dir+"/nowhere", 0); err == nil {
			t.Fatal("it could be moved")
		}
	case "ioctl":
		harness.Check(t, control7())
	}
}

// settle gives an interface an address, and waits until it is usable.
func settle(name string, address netip.Prefix) error {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return err
	}
	c, err := netlink.Dial(unix.NETLINK_ROUTE, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	head, err := binary.Append(nil, binary.NativeEndian, unix.IfAddrmsg{
		Family: unix.AF_INET6, Prefixlen: uint8(address.Bits()), Index: uint32(i.Index),
	})
	if err != nil {
		return err
	}
	attributes := netlink.NewAttributeEncoder()
	attributes.Bytes(unix.IFA_ADDRESS, address.Addr().AsSlice())
	asked, err := attributes.Encode()
	if err != nil {
		return err
	}
	body := slices.Concat(head, asked)
	create := netlink.Request | netlink.Acknowledge | netlink.Create | netlink.Excl
	if _, err := c.Execute(netlink.Message{Header: netlink.Header{Type: unix.RTM_NEWADDR, Flags: create}, Data: body}); err != nil {
		return err
	}
	for range 1000 {
		known, err := c.Execute(netlink.Message{Header: netlink.Header{Type: unix.RTM_GETADDR, Flags: netlink.Request | netlink.Dump}, Data: head})
		if err != nil {
			return err
		}
		if slices.ContainsFunc(known, func(m netlink.Message) bool {
			whole, err := m.MarshalBinary()
			said := (&wire.Call{Family: unix.NETLINK_ROUTE}).Answers(whole)
			return err == nil && len(said) == 1 && said[0].(*event.Address).Address == address.String() && said[0].(*event.Address).State == event.AddressReady
		}) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("%s stays tentative", address)
}

func control7() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("br7")
	if err != nil {
		return err
	}
	up := func() { r.SetUint16(unix.IFF_UP) }
	mtu := func() { r.SetUint32(1400) }
	for _, do := range []struct {
		request uint
		with    func()
	}{{unix.SIOCBRADDBR, nil}, {unix.SIOCGIFINDEX, nil}, {unix.SIOCSIFMTU, mtu}, {unix.SIOCSIFFLAGS, up}} {
		if do.with != nil {
			do.with()
		}
		if err := unix.IoctlIfreq(fd, do.request, r); err != nil {
			return fmt.Errorf("ioctl %#x: %w", do.request, err)
		}
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCBRADDBR, r); err != unix.EEXIST {
		return fmt.Errorf("a second br7: %w", err)
	}
	return nil
}

func TestAnAddressThatIsWaitedForIsSeen(t *testing.T) {
	o, _, _, _ := asked(t, `
		echo 1 > /proc/sys/net/ipv6/conf/default/accept_dad
		ip link add veth7 type veth peer name veth8
		ip link set veth7 up
		ip link set veth8 up
		HELP=dad exec $HELPER -test.run 'TestHelper$'`)
	var told []event.AddressState
	var asked event.Request
	for _, q := range all[*event.Request](o) {
		if q.Name == "RTM_NEWADDR" {
			asked = *q
		}
	}
	for _, a := range all[*event.Address](o) {
		if a.Address == asked.Address && a.Index == asked.Interface.Index && a.NetNS == asked.NetNS && a.Process == asked.Process {
			told = append(told, a.State)
		}
	}
	if asked.Address != "fd09::5/64" || !slices.Equal(told, []event.AddressState{event.AddressTentative, event.AddressReady}) {
		t.Errorf("asked for %+v, told %q", asked, told)
	}
}

func TestAMountThatFailsIsSeen(t *testing.T) {
	o, _, _, _ := asked(t, `HELP=mount exec $HELPER -test.run 'TestHelper$'`)
	var got []string
	for _, m := range all[*event.Mount](o) {
		target := "dir"
		if strings.HasSuffix(m.Target, "/nowhere") {
			target += "/nowhere"
		}
		if m.Name == "move_mount" {
			m.Source = "dir"
		}
		got = append(got, strings.Join([]string{m.Name, m.Source, target, m.FSType, fmt.Sprint(m.Flags), m.Error}, "|"))
		if m.Start == 0 || m.Thread == 0 {
			t.Errorf("%+v", m)
		}
	}
	compare(t, got,
		"mount|/proc/self/ns/nothing|dir||[bind ro]|ENOENT",
		"mount|tmpfs|dir/nowhere|tmpfs|[]|ENOENT",
		"umount2||dir||[detach]|EINVAL",
		"move_mount|dir|dir/nowhere||[]|ENOENT",
	)
}

func TestWhatIsAskedByIoctlsIsSeen(t *testing.T) {
	o, _, _, _ := asked(t, `HELP=ioctl exec $HELPER -test.run 'TestHelper$'`)
	compare(t, changes(o, "ioctl", ""),
		"SIOCBRADDBR, br7",
		"SIOCSIFMTU, br7, mtu 1400",
		"SIOCSIFFLAGS, br7, up",
		"SIOCBRADDBR, br7, failed EEXIST",
	)
	if !slices.ContainsFunc(all[*event.Request](o), func(q *event.Request) bool {
		return q.Name == "SIOCGIFINDEX" && q.Query() && q.Interface.Name == "br7" && q.Interface.Index > 1
	}) {
		t.Error("the question for its number is missing")
	}
}
