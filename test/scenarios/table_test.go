//go:build linux

package scenarios

import (
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"testing"

	nl "github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

const tracked = "/proc/sys/net/netfilter/nf_conntrack_"

// A full table of connections is named; beside one with a little room, a packet that is dropped elsewhere is not its.
// The kernel counts for each network namespace, so the node has one of its own.
func TestAFullTableOfConnections(t *testing.T) {
	private(t)
	s := set(t, rig.Options{}, "[slow]\nfirst_connection = \"3s\"\n")
	s.run("ip", "link", "set", "lo", "up")
	s.network("pods", rig.Bridge())
	outside, server := s.outside()
	most := number(t, tracked+"max")
	flush := func() { harness.Check(t, netlink.ConntrackTableFlush(netlink.ConntrackTable)) }
	s.run("nft", "add table inet tracks; add chain inet tracks f { type filter hook forward priority -1; }; add rule inet tracks f ct state new counter")
	fill(t, most*8/10)
	s.late(s.droppedElsewhere(outside), server)
	says := "the kernel's table of connection tracking is full: "
	s.late(late{
		"table-0", "table_full", says, "sysctl -w net.netfilter.nf_conntrack_max=" + strconv.Itoa(2*most),
		func() { // without the connections of the pods before: each that ends leaves room for one
			flush()
			fill(t, most)
		},
		flush, false,
	}, server)
}

func number(t *testing.T, file string) int {
	text := harness.Must(os.ReadFile(file))(t)
	n := harness.Must(strconv.Atoi(strings.TrimSpace(string(text))))(t)
	return n
}

// fill adds connections, which nothing ends, until the table has as many.
func fill(t *testing.T, until int) {
	conn := harness.Must(nl.Dial(unix.NETLINK_NETFILTER, nil))(t)
	defer conn.Close()
	tuple := func(from, to uint32) func(*nl.AttributeEncoder) error {
		return func(e *nl.AttributeEncoder) error {
			e.ByteOrder = binary.BigEndian
			e.Nested(1, func(e *nl.AttributeEncoder) error { // CTA_TUPLE_IP
				e.ByteOrder = binary.BigEndian
				e.Uint32(1, from) // CTA_IP_V4_SRC
				e.Uint32(2, to)   // CTA_IP_V4_DST
				return nil
			})
			e.Nested(2, func(e *nl.AttributeEncoder) error { // CTA_TUPLE_PROTO
				e.ByteOrder = binary.BigEndian
				e.Uint8(1, unix.IPPROTO_UDP) // CTA_PROTO_NUM
				e.Uint16(2, 4711)            // CTA_PROTO_SRC_PORT
				e.Uint16(3, 4711)            // CTA_PROTO_DST_PORT
				return nil
			})
			return nil
		}
	}
	const server = 127<<24 | 7
	for count := number(t, tracked+"count"); count < until; count = number(t, tracked+"count") {
		var batch []nl.Message
		for i := range min(256, until-count) {
			client := uint32(10<<24 | count + i)
			e := nl.NewAttributeEncoder()
			e.ByteOrder = binary.BigEndian
			e.Nested(1, tuple(client, server)) // CTA_TUPLE_ORIG
			e.Nested(2, tuple(server, client)) // CTA_TUPLE_REPLY
			e.Uint32(3, 1<<1|1<<2|1<<3)        // CTA_STATUS: seen reply, assured, confirmed
			e.Uint32(7, 3600)                  // CTA_TIMEOUT
			attributes := harness.Must(e.Encode())(t)
			batch = append(batch, nl.Message{
				Header: nl.Header{Type: 1 << 8, Flags: nl.Request | nl.Create}, // NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_NEW
				Data:   append([]byte{unix.AF_INET, 0, 0, 0}, attributes...),   // nfgenmsg
			})
		}
		_, err := conn.SendMessages(batch)
		harness.Check(t, err)
	}
}
