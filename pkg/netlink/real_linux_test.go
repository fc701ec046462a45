package netlink

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

// sent is a system call of a real program.
type sent struct {
	command string
	family  uint16
	data    []byte
	want    string // one line per request
}

// real reads testdata/messages.txt: messages of ip, bridge, tc (iproute2 6.1), nft 1.0.6 and iptables-nft 1.8.9 as
// strace showed them, with the expected requests.
func real(t testing.TB) (all []sent) {
	t.Helper()
	file := harness.Must(os.ReadFile("testdata/messages.txt"))(t)
	command := ""
	for line := range strings.Lines(string(file)) {
		line = strings.TrimSuffix(line, "\n")
		first, rest, _ := strings.Cut(line, " ")
		switch first {
		case "#":
			command = rest
		case ">":
			all[len(all)-1].want += rest + "\n"
		default:
			data, err := hex.DecodeString(rest)
			family, known := map[string]uint16{"NETLINK_ROUTE": unix.NETLINK_ROUTE, "NETLINK_NETFILTER": unix.NETLINK_NETFILTER}[first]
			if err != nil || !known {
				t.Fatalf("%s: %v", line, err)
			}
			all = append(all, sent{command: command, family: family, data: data})
		}
	}
	return all
}

func TestRealPrograms(t *testing.T) {
	for _, m := range real(t) {
		c := anyone(m.family)
		c.ByPID = func(pid uint32) event.Namespace { return event.Namespace{Label: fmt.Sprint("of ", pid)} }
		got := ""
		for _, q := range c.Requests(m.data) {
			got += summary(q) + "\n"
		}
		harness.Equal(t, got, m.want, m.command, hex.EncodeToString(m.data), "is read as")
	}
}

func summary(q *event.Request) string {
	s := fmt.Sprintf("%s %s: %s %s", q.Protocol, q.Name, q.Verb, q.Object)
	for _, part := range []struct {
		word string
		what any
	}{
		{"exclusive", q.Exclusive},
		{"times", q.Count},
		{"index", q.Interface.Index},
		{"", q.Interface.Name},
		{"kind", q.Interface.Kind},
		{"peer", q.Interface.Peer},
		{"master", q.Interface.Master},
		{"is", q.Interface.State},
		{"mtu", q.Interface.MTU},
		{"mac", q.Interface.MAC},
		{"netns", q.Interface.NetNS.Label},
		{"address", q.Address},
		{"to", q.Route},
		{"via", q.Gateway},
		{"table", q.Table},
		{"chain", q.Chain},
		{"failed", q.Error},
	} {
		switch said := fmt.Sprint(part.what); said {
		case "", "0", "false":
		case "true":
			s += ", " + part.word
		default:
			s += ", " + strings.TrimSpace(part.word+" "+said)
		}
	}
	return s
}
