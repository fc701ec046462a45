package probe

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

type network struct {
	t    *testing.T
	path string
	work chan func()
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	harness.Root(t)
	n := &network{t: t, work: make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // the namespace ends with the thread
		err := unix.Unshare(unix.CLONE_NEWNET)
		n.path = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
		made <- err
		for f := range n.work {
			f()
		}
	}()
	harness.Check(t, <-made)
	t.Cleanup(func() { close(n.work) })
	return n
}

func (n *network) in(f func()) {
	done := make(chan struct{})
	n.work <- func() { defer close(done); f() }
	<-done
}

func (n *network) ip(lines ...string) {
	n.t.Helper()
	n.in(func() {
		for _, line := range lines {
			if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
				n.t.Errorf("ip %s: %v\n%s", line, err, out)
			}
		}
	})
}

func (n *network) join(to *network, own, other string) {
	n.t.Helper()
	n.ip("link set lo up", "link add far type veth peer name near netns "+to.path, "addr add "+own+" dev far", "link set far up")
	to.ip("link set lo up", "addr add "+other+" dev near", "link set near up")
	for name, in := range map[string]*network{"far": n, "near": to} {
		harness.Until(n.t, name+" has a carrier", func() (has bool) {
			in.in(func() {
				i, err := net.InterfaceByName(name)
				has = err == nil && i.Flags&net.FlagRunning != 0
			})
			return has
		})
	}
}

func (o *observed) until(t *testing.T, what string, is func(event.Body) bool) {
	t.Helper()
	harness.Until(t, what, func() bool { return o.any(is) })
}
