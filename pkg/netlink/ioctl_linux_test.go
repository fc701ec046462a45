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
		got  *event.Request
		want string
	}{
		"a table of iptables": {
			set(unix.SOL_IP, 0, "nat\x00\xff\xff"), "iptables IPT_SO_SET_REPLACE: change table, table nat",
		},
		"a table that changed meanwhile": {
			set(unix.SOL_IPV6, -11, "filter\x00"), "ip6tables IP6T_SO_SET_REPLACE: change table, table filter, failed EAGAIN",
		},
		"an interface is set up": {
			control(unix.SIOCSIFFLAGS, 0, eth0+"\x01\x00\x00\x00\x00\x00\x00\x00"), "ioctl SIOCSIFFLAGS: change link, eth0, is up",
		},
		"its number is asked for": {
			control(unix.SIOCGIFINDEX, 0, eth0+"\x07\x00\x00\x00\x00\x00\x00\x00"), "ioctl SIOCGIFINDEX: query link, index 7, eth0",
		},
		"… of one that is not there": {
			control(unix.SIOCGIFINDEX, -19, eth0+"\x07\x00\x00\x00\x00\x00\x00\x00"), "ioctl SIOCGIFINDEX: query link, eth0, failed ENODEV",
		},
		"it gets an address": {
			control(unix.SIOCSIFADDR, 0, eth0+"\x02\x00\x00\x00\x0a\x00\x00\x05"), "ioctl SIOCSIFADDR: add address, eth0, address 10.0.0.5",
		},
		"a bridge":            {control(unix.SIOCBRADDBR, 0, "br0\x00rubbish"), "ioctl SIOCBRADDBR: add link, br0"},
		"nothing is readable": {control(unix.SIOCBRADDBR, 0, ""), "ioctl SIOCBRADDBR: add link"},
		"one without a name":  {control(0x89ff, 0, eth0), "ioctl ioctl 0x89ff:  "},
	} {
		t.Run(name, func(t *testing.T) {
			common(t, test.got, 0, 0)
			harness.Equal(t, summary(test.got), test.want)
		})
	}
	if q := control(unix.SIOCATMARK, 0, ""); q != nil {
		t.Errorf("only the socket: %+v", q)
	}
}
