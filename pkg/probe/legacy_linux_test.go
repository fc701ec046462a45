package probe

import (
	"reflect"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
)

func TestLegacyInterfaces(t *testing.T) {
	at := func(class insideClass, ret int64, arg1, arg2 uint64, data string) record {
		w := &insideCallEvent{Class: uint8(class), Ret: ret, Args: [4]uint64{3, arg1, arg2, 0}, NetnsInum: 5}
		return record{insideCallEvent: w, data: []byte(data)}
	}
	const eth0 = "eth0\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	for name, test := range map[string]struct {
		record record
		want   *event.Request
	}{
		"a table of iptables": {
			at(insideClassCLASS_SETSOCKOPT, 0, unix.SOL_IP, 64, "nat\x00\xff\xff"),
			&event.Request{Protocol: "iptables", Name: "IPT_SO_SET_REPLACE", Object: event.ObjectTable, Verb: event.VerbChange, Table: "nat"},
		},
		"a table that changed meanwhile": {
			at(insideClassCLASS_SETSOCKOPT, -11, unix.SOL_IPV6, 64, "filter\x00"),
			&event.Request{Protocol: "ip6tables", Name: "IP6T_SO_SET_REPLACE", Object: event.ObjectTable, Verb: event.VerbChange, Table: "filter", Error: "EAGAIN"},
		},
		"an interface is set up": {
			at(insideClassCLASS_IOCTL, 0, unix.SIOCSIFFLAGS, 0, eth0+"\x01\x00\x00\x00\x00\x00\x00\x00"),
			&event.Request{Protocol: "ioctl", Name: "SIOCSIFFLAGS", Object: event.ObjectLink, Verb: event.VerbChange, Interface: event.Interface{Name: "eth0", State: "up"}},
		},
		"its number is asked for": {
			at(insideClassCLASS_IOCTL, 0, unix.SIOCGIFINDEX, 0, eth0+"\x07\x00\x00\x00\x00\x00\x00\x00"),
			&event.Request{Protocol: "ioctl", Name: "SIOCGIFINDEX", Object: event.ObjectLink, Verb: event.VerbQuery, Interface: event.Interface{Name: "eth0", Index: 7}},
		},
		"… of one that is not there": {
			at(insideClassCLASS_IOCTL, -19, unix.SIOCGIFINDEX, 0, eth0+"\x07\x00\x00\x00\x00\x00\x00\x00"),
			&event.Request{Protocol: "ioctl", Name: "SIOCGIFINDEX", Object: event.ObjectLink, Verb: event.VerbQuery, Error: "ENODEV", Interface: event.Interface{Name: "eth0"}},
		},
		"it gets an address": {
			at(insideClassCLASS_IOCTL, 0, unix.SIOCSIFADDR, 0, eth0+"\x02\x00\x00\x00\x0a\x00\x00\x05"),
			&event.Request{Protocol: "ioctl", Name: "SIOCSIFADDR", Object: event.ObjectAddress, Verb: event.VerbAdd, Address: "10.0.0.5", Interface: event.Interface{Name: "eth0"}},
		},
		"a bridge":            {at(insideClassCLASS_IOCTL, 0, unix.SIOCBRADDBR, 0, "br0\x00rubbish"), &event.Request{Protocol: "ioctl", Name: "SIOCBRADDBR", Object: event.ObjectLink, Verb: event.VerbAdd, Interface: event.Interface{Name: "br0"}}},
		"nothing is readable": {at(insideClassCLASS_IOCTL, 0, unix.SIOCBRADDBR, 0, ""), &event.Request{Protocol: "ioctl", Name: "SIOCBRADDBR", Object: event.ObjectLink, Verb: event.VerbAdd}},
		"one without a name":  {at(insideClassCLASS_IOCTL, 0, 0x89ff, 0, eth0), &event.Request{Protocol: "ioctl", Name: "ioctl 0x89ff"}},
		"only the socket":     {at(insideClassCLASS_IOCTL, 0, unix.SIOCATMARK, 0, ""), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if test.want != nil {
				test.want.NetNS = event.Namespace{Key: "5", Label: "5"}
			}
			if got := legacy(test.record); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%+v\nwant %+v", got, test.want)
			}
		})
	}
}
