package firstconn

import (
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

const (
	snmp = `Ip: Forwarding DefaultTTL InReceives OutNoRoutes
Ip: 2 64 12 3
Icmp: InMsgs InErrors InDestUnreachs
Icmp: 4 0 1
Tcp: RtoAlgorithm MaxConn ActiveOpens PassiveOpens AttemptFails
Tcp: 1 -1 7 0 2
Udp: InDatagrams NoPorts InErrors OutDatagrams
Udp: 4 0 0 9
`
	netstat = "TcpExt: SyncookiesSent TCPSynRetrans\nTcpExt: 0 5\n"
	arp     = `IP address       HW type     Flags       HW address            Mask     Device
10.22.0.1        0x1         0x2         5e:0c:11:22:33:44     *        eth0
10.22.0.9        0x1         0x0         00:00:00:00:00:00     *        eth0
`
)

func TestWhatTheKernelCountedIsRead(t *testing.T) {
	want := Tries{
		Opened: 7, Failed: 2, SYNs: 5, Unroutable: 3, Unreached: 1, Asked: 9, Answered: 4,
		Silent: []string{"10.22.0.9"},
	}
	harness.DeepEqual(t, Parse(snmp, netstat, arp), want)
	harness.DeepEqual(t, Parse("", "x\ny: 1", "\n\n"), Tries{}, "of nothing")
}

func TestWhyAFirstConnectionWasLate(t *testing.T) {
	for name, test := range map[string]struct {
		tries Tries
		cause Cause
		says  string
	}{
		"a neighbour that is silent": {
			Tries{Opened: 2, Failed: 1, SYNs: 1, Silent: []string{"10.22.0.9"}},
			NoNeighbour,
			"ARP: no answer from 10.22.0.9; SYN sent again 1 times",
		},
		"no route":                         {Tries{Unroutable: 2}, NoRoute, "no route for 2 packets"},
		"a policy that rejects":            {Tries{Opened: 3, Unreached: 2, Failed: 2}, Unreachable, "ICMP reported 2 times"},
		"a policy that drops":              {Tries{Opened: 2, SYNs: 4}, Unanswered, "SYN sent again 4 times"},
		"no listener":                      {Tries{Opened: 4, Failed: 3}, Refused, "3 attempts failed at once"},
		"DNS without an answer":            {Tries{Opened: 1, Asked: 6, Answered: 1}, NoReply, "5 of 6 UDP datagrams"},
		"it tried nothing":                 {Tries{Opened: 1}, Idle, "tried nothing before"},
		"it was called, and tried nothing": {Tries{}, Idle, "tried nothing before"},
		"what cannot be told":              {Tries{Opened: 5, Asked: 2, Answered: 2}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if cause, says := test.tries.Why(); cause != test.cause ||
				!strings.HasPrefix(strings.TrimPrefix(says, "it had "), test.says) {
				t.Errorf("%s: %s", cause, says)
			}
		})
	}
}
