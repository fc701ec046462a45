package decode

import (
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
