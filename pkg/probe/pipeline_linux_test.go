package probe

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

const pipelined = 24

func init() {
	// A plugin that asks to delete interfaces that are not there, and then reads the answers.
	acts["pipeline"] = func(string) error {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for i := range uint32(pipelined) {
			m := binary.NativeEndian.AppendUint32(nil, unix.NLMSG_HDRLEN+unix.SizeofIfInfomsg)
			m = binary.NativeEndian.AppendUint16(m, unix.RTM_DELLINK)
			m = binary.NativeEndian.AppendUint16(m, unix.NLM_F_REQUEST|unix.NLM_F_ACK)
			m = binary.NativeEndian.AppendUint32(m, i)
			m = append(m, make([]byte, 8)...)
			m = binary.NativeEndian.AppendUint32(m, 1<<30+i)
			m = append(m, make([]byte, 8)...)
			if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
				return err
			}
		}
		for range pipelined {
			if _, _, err := unix.Recvfrom(fd, make([]byte, 1<<12), 0); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestEachRefusalOfManyRequestsInProgressIsSeen(t *testing.T) {
	for _, way := range []string{"", "system-calls"} {
		cmd := acting(t, "pipeline", "")
		o := observeProbe(t, Options{Way: way}, func(*Probe, *observed) { harness.Check(t, cmd.Run()) })
		var refused []uint32
		for _, a := range all[*event.Answer](o) {
			if a.Error == "ENODEV" {
				refused = append(refused, a.Sequence)
			}
		}
		if len(refused) != pipelined || len(slices.Compact(slices.Sorted(slices.Values(refused)))) != pipelined {
			t.Errorf("%q: refused %d", way, refused)
		}
	}
}
