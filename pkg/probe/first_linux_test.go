package probe

import (
	"net"
	"os/exec"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func TestAFirstConnectionIsToldByItsEnd(t *testing.T) {
	if _, err := exec.LookPath("nsenter"); err != nil {
		t.Skip(err)
	}
	pod := newNetwork(t)
	pod.ip("link set lo up")
	var c net.Conn
	pod.in(func() {
		l := harness.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
		t.Cleanup(func() { l.Close() })
		c = harness.Must(net.Dial("tcp", l.Addr().String()))(t)
	})
	cmd := plugin(t, "late", "nsenter --net="+pod.path+" true")
	o := observe(t, func(o *observed) {
		harness.Check(t, cmd.Run()) // awaited from now on
		c.Close()
		o.until(t, "it is told", func(b event.Body) bool { _, is := b.(*event.FirstConnection); return is })
	})
	entered := all[*event.Enter](o)
	first := all[*event.FirstConnection](o)
	if len(entered) == 0 || len(first) != 1 || first[0].NetNS != entered[0].NetNS {
		t.Errorf("%+v after %+v", first, entered)
	}
}
