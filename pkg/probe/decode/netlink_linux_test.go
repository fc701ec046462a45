package decode

import (
	"encoding/binary"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
)

// sent and received are records of a netlink socket, of process 7@0.
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

// resident is a decoder that knows the process of these records, which are from a pod.
func resident() *Decoder {
	d := newDecoder()
	d.note(event.Event{Body: &event.Exec{Process: "7@0", Root: true, InPath: true, Call: &event.Call{}, NetNS: event.Namespace{Key: "1"}}})
	return d
}

// message builds one: a fixed header, then attributes.
func message(kind netlink.HeaderType, flags netlink.HeaderFlags, head any, fill func(*netlink.AttributeEncoder)) []byte {
	data, err := binary.Append(nil, binary.NativeEndian, head)
	if err != nil {
		panic(err)
	}
	if fill != nil {
		data = append(data, attrs(fill)...)
	}
	b, err := (&netlink.Message{
		Header: netlink.Header{Length: uint32(16+len(data)+3) &^ 3, Type: kind, Flags: flags, Sequence: 3}, Data: data,
	}).MarshalBinary()
	if err != nil {
		panic(err)
	}
	return b
}

func attrs(fill func(*netlink.AttributeEncoder)) []byte {
	ae := netlink.NewAttributeEncoder()
	fill(ae)
	b, err := ae.Encode()
	if err != nil {
		panic(err)
	}
	return b
}

func TestWhatIsTooLongToBeReadWholeSaysSo(t *testing.T) {
	up := message(unix.RTM_NEWLINK, netlink.Request, unix.IfInfomsg{Index: 2, Flags: unix.IFF_UP, Change: unix.IFF_UP}, nil)
	r := sent(unix.NETLINK_ROUTE, up)
	r.Ret, r.Cut = 5000, 1
	if got := resident().requests(r); len(got) != 2 || got[1].(*event.Cut).Count != 5000-32 {
		t.Errorf("%+v", got)
	}
}
