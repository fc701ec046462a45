package decode

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/netlinktest"
)

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
