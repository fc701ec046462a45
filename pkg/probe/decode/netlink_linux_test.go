package decode

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/netlinktest"
)

// sent and received are records of process 7@0.
func sent(protocol uint16, data ...[]byte) record {
	return over(kernel.InsideClassCLASS_SENDTO, protocol, data)
}

func received(protocol uint16, data ...[]byte) record {
	return over(kernel.InsideClassCLASS_RECVMSG, protocol, data)
}

func over(class kernel.InsideClass, protocol uint16, data [][]byte) record {
	w := &kernel.InsideCallEvent{Class: uint8(class), Protocol: protocol, Port: 77, NetnsInum: 5, NetnsCookie: 50, Start: 100}
	w.H.Kind, w.H.Task.Tgid = uint8(kernel.LifeKindKIND_CALL), 7
	r := record{InsideCallEvent: w, process: "7@0"}
	for _, d := range data {
		r.data = append(r.data, d...)
	}
	w.Ret, w.Len = int64(len(r.data)), uint32(len(r.data))
	copy(w.Data[:], r.data)
	return r
}

// resident is a decoder that knows that process, in a pod.
func resident() *Decoder {
	d := newDecoder()
	d.note(event.Event{Body: &event.Exec{Process: "7@0", Root: true, InPath: true, Call: &event.Call{}, NetNS: event.Namespace{Key: "1"}}})
	return d
}

func TestWhatIsTooLongToBeReadWholeSaysSo(t *testing.T) {
	up := netlinktest.Message(unix.RTM_NEWLINK, netlink.Request, unix.IfInfomsg{Index: 2, Flags: unix.IFF_UP, Change: unix.IFF_UP}, nil)
	r := sent(unix.NETLINK_ROUTE, up)
	r.Ret, r.Cut = 5000, 1
	if got := resident().requests(r); len(got) != 2 || got[1].(*event.Cut).Count != 5000-32 {
		t.Errorf("%+v", got)
	}
}

func TestAnInterfaceByItsIndexIsEvidence(t *testing.T) {
	const id, name = "5b2919415cea791dd4ddff000f46e4ada5386e0c3147ae17ac5eebb82e008418", "lxc1a2b3c4d5e6f"
	announced := netlinktest.Message(unix.RTM_NEWLINK, 0, unix.IfInfomsg{Index: 38}, func(ae *netlink.AttributeEncoder) { ae.String(unix.IFLA_IFNAME, name) })
	deleted := netlinktest.Message(unix.RTM_DELLINK, netlink.Request, unix.IfInfomsg{Index: 38}, nil)
	for home, want := range map[string]int{"50": 1, "1": 0} { // the records' namespace is 50
		d := newDecoder()
		d.note(event.Event{Body: &event.Exec{Process: "8@0", Root: true, InPath: true, Call: &event.Call{ContainerID: id}, NetNS: event.Namespace{Key: home}}})
		made := &event.Request{Object: event.ObjectLink, Verb: event.VerbAdd, Interface: event.Interface{Name: name, Kind: "veth"}}
		d.attribute("8@0", made)
		d.Serve("7@0", 1)
		for _, l := range d.answers(received(unix.NETLINK_ROUTE, announced)) {
			harness.Equal(t, l.(*event.Link).Name, name, l)
		}
		for _, q := range d.requests(sent(unix.NETLINK_ROUTE, deleted)) {
			d.attribute("7@0", q)
			if got := q.(*event.Request).Mentions; len(got) != want {
				t.Errorf("home %s: %v", home, got)
			}
		}
	}
}

func TestANamespaceThatIsOpenIsKnownByItsKey(t *testing.T) {
	d := resident()
	open := func(process event.Process, fd int64, cookie uint64, inode uint32) {
		d.add(process, "")
		w := &kernel.InsideCallEvent{Ret: fd, Object: uint64(inode), NetnsCookie: cookie, NetnsInum: inode}
		if cookie == 0 { // of another kind
			w.NetnsInum = 0
		}
		d.opened(record{InsideCallEvent: w, process: process})
	}
	open("7@0", 5, 50, 4026532177)
	open("9@0", 5, 60, 4026532177)
	if got := d.byFile("7@0", 5); got.Key != "50" {
		t.Errorf("%+v", got)
	}
	open("7@0", 5, 0, 4026532180)
	harness.Equal(t, d.byFile("7@0", 5), (event.Namespace{}), "a descriptor of something else")
}

// In a story + is a request, and other entries are flags of a reported address. Stories are in a pod unless stated.
func TestDuplicateAddressDetection(t *testing.T) {
	const tentative, failed, permanent = unix.IFA_F_TENTATIVE, unix.IFA_F_TENTATIVE | unix.IFA_F_DADFAILED, unix.IFA_F_PERMANENT
	const asks, onNode = -1, -2
	for name, test := range map[string]struct {
		story []int
		want  []event.AddressState
	}{
		"asked for, waited for":       {[]int{asks, tentative, tentative, permanent, permanent}, []event.AddressState{event.AddressTentative, event.AddressReady}},
		"asked for, and somebody has": {[]int{asks, tentative, failed}, []event.AddressState{event.AddressTentative, event.AddressDuplicate}},
		"asked for without detection": {[]int{asks, permanent, permanent}, []event.AddressState{event.AddressReady}},
		"was there before":            {[]int{permanent, permanent}, nil},
		"another one asked for it":    {[]int{tentative, permanent}, []event.AddressState{event.AddressTentative, event.AddressReady}},
		"another pod's, on the node":  {[]int{onNode, tentative, permanent}, nil},
		"its own, on the node":        {[]int{onNode, asks, tentative, permanent}, []event.AddressState{event.AddressTentative, event.AddressReady}},
	} {
		t.Run(name, func(t *testing.T) {
			d := resident()
			var got []event.AddressState
			for _, step := range test.story {
				if step == onNode {
					d.processes["7@0"].run.of.Home.Key = "50"
					continue
				}
				fill := func(ae *netlink.AttributeEncoder) {
					ae.Bytes(unix.IFA_ADDRESS, netip.MustParseAddr("fd00::5").AsSlice())
					ae.Uint32(unix.IFA_FLAGS, uint32(max(step, 0)))
				}
				m := netlinktest.Message(unix.RTM_NEWADDR, 0, unix.IfAddrmsg{Family: unix.AF_INET6, Prefixlen: 64, Index: 3}, fill)
				if step == asks {
					d.requests(sent(unix.NETLINK_ROUTE, m))
					continue
				}
				for _, b := range d.answers(received(unix.NETLINK_ROUTE, m)) {
					a := b.(*event.Address)
					if a.Address != "fd00::5/64" || a.Index != 3 || a.NetNS.Key != "50" {
						t.Errorf("%+v", a)
					}
					got = append(got, a.State)
				}
			}
			harness.EqualSlices(t, got, test.want, "told")
		})
	}
}

func TestAddressesAreBounded(t *testing.T) {
	d, told := resident(), 0
	for n := range 10 * maxAddresses {
		told += len(d.answers(received(unix.NETLINK_ROUTE, netlinktest.Message(unix.RTM_NEWADDR, 0, unix.IfAddrmsg{Family: unix.AF_INET6, Flags: unix.IFA_F_TENTATIVE}, func(ae *netlink.AttributeEncoder) {
			ae.Bytes(unix.IFA_ADDRESS, netip.MustParseAddr(fmt.Sprintf("fd00::%x", n)).AsSlice())
		}))))
	}
	if told != maxAddresses || len(d.processes["7@0"].addresses) != maxAddresses {
		t.Errorf("told of %d, keeps %d", told, len(d.processes["7@0"].addresses))
	}
}
