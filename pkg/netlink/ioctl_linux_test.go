package netlink

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func TestLegacyInterfaces(t *testing.T) {
	set := func(level uint64, result int64, option string) *event.Request {
		return socket(0).Replace(level, result, []byte(option))
	}
	control := func(command uint32, result int64, argument string) *event.Request {
		return socket(0).Ioctl(command, result, []byte(argument))
	}
	const eth0 = "eth0\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	for name, test := range map[string]struct {
		got, want *event.Request
	}{
		"a table of iptables": {
			set(unix.SOL_IP, 0, "nat\x00\xff\xff"),
			&event.Request{
				Protocol: "iptables", Name: "IPT_SO_SET_REPLACE", Object: event.ObjectTable, Verb: event.VerbChange,
				Table: "nat",
			},
		},
		"a table that changed meanwhile": {
			set(unix.SOL_IPV6, -11, "filter\x00"),
			&event.Request{
				Protocol: "ip6tables", Name: "IP6T_SO_SET_REPLACE", Object: event.ObjectTable, Verb: event.VerbChange,
				Table: "filter", Error: "EAGAIN",
			},
		},
		"an interface is set up": {
			control(unix.SIOCSIFFLAGS, 0, eth0+"\x01\x00\x00\x00\x00\x00\x00\x00"),
			&event.Request{
				Protocol: "ioctl", Name: "SIOCSIFFLAGS", Object: event.ObjectLink, Verb: event.VerbChange,
				Interface: event.Interface{Name: "eth0", State: "up"},
			},
		},
		"its number is asked for": {
			control(unix.SIOCGIFINDEX, 0, eth0+"\x07\x00\x00\x00\x00\x00\x00\x00"),
			&event.Request{
				Protocol: "ioctl", Name: "SIOCGIFINDEX", Object: event.ObjectLink, Verb: event.VerbQuery,
				Interface: event.Interface{Name: "eth0", Index: 7},
			},
		},
		"… of one that is not there": {
			control(unix.SIOCGIFINDEX, -19, eth0+"\x07\x00\x00\x00\x00\x00\x00\x00"),
			&event.Request{
				Protocol: "ioctl", Name: "SIOCGIFINDEX", Object: event.ObjectLink, Verb: event.VerbQuery,
				Error: "ENODEV", Interface: event.Interface{Name: "eth0"},
			},
		},
		"it gets an address": {
			control(unix.SIOCSIFADDR, 0, eth0+"\x02\x00\x00\x00\x0a\x00\x00\x05"),
			&event.Request{
				Protocol: "ioctl", Name: "SIOCSIFADDR", Object: event.ObjectAddress, Verb: event.VerbAdd,
				Address: "10.0.0.5", Interface: event.Interface{Name: "eth0"},
			},
		},
		"a bridge": {
			control(unix.SIOCBRADDBR, 0, "br0\x00rubbish"),
			&event.Request{
				Protocol: "ioctl", Name: "SIOCBRADDBR", Object: event.ObjectLink, Verb: event.VerbAdd,
				Interface: event.Interface{Name: "br0"},
			},
		},
		"nothing is readable": {
			control(unix.SIOCBRADDBR, 0, ""),
			&event.Request{Protocol: "ioctl", Name: "SIOCBRADDBR", Object: event.ObjectLink, Verb: event.VerbAdd},
		},
		"one without a name": {control(0x89ff, 0, eth0), &event.Request{Protocol: "ioctl", Name: "ioctl 0x89ff"}},
		"only the socket":    {control(unix.SIOCATMARK, 0, ""), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if test.want != nil {
				test.want.Process, test.want.Start, test.want.NetNS = "7@0", 100, event.Namespace{Key: "50", Label: "5"}
			}
			harness.DeepEqual(t, test.got, test.want)
		})
	}
}
