//go:build linux

package neighbours

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

const (
	// hostiles is the number of connections that attackers hold, of the relay and of the metrics server each.
	hostiles = 1000
	delay    = 200 * time.Millisecond
	// nriTimeout is containerd's timeout for a plugin, after which it drops the plugin (plugin_request_timeout, 2
	// s).
	nriTimeout = 2 * time.Second
)

var manners = []func(c *net.TCPConn){
	func(*net.TCPConn) {},
	func(c *net.TCPConn) { _, _ = io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n") },
	func(c *net.TCPConn) { _, _ = io.WriteString(c, "POST /v1/traces HTTP/1.1\r\nContent-Length: 9") },
	func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
	},
	func(c *net.TCPConn) { _ = c.CloseWrite() },
	func(c *net.TCPConn) { _, _ = io.WriteString(c, "GET / HTTP/1.1\r\nX: "+strings.Repeat("x", 64<<10)) },
	func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	},
}

// besiege holds connections to addr until ctx ends. It connects again after each disconnect.
func besiege(ctx context.Context, addr string, all *sync.WaitGroup, connected, gone *atomic.Int64) {
	for i := range hostiles {
		all.Go(func() {
			for ctx.Err() == nil {
				c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", addr)
				if err == nil {
					connected.Add(1)
					end := context.AfterFunc(ctx, func() { _ = c.Close() })
					_ = c.SetWriteDeadline(time.Now().Add(5 * time.Second))
					manners[i%len(manners)](c.(*net.TCPConn))
					_, _ = io.Copy(io.Discard, c)
					end()
					_ = c.Close()
					gone.Add(1)
				}
				select { // the test is not about CPU
				case <-time.After(500 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
}

func (n *node) refused() (lines string) {
	answer, err := http.Get("http://" + n.metrics + "/metrics")
	harness.Check(n.T, err)
	defer answer.Body.Close()
	body := harness.Must(io.ReadAll(answer.Body))(n.T)
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "cniscope_relay_connections_refused_total") {
			lines += line
		}
	}
	return lines
}

func TestHostileNeighbours(t *testing.T) {
	lasts := lasting(t)
	n := newNode(t, older, "")
	n.settle()
	settled := n.pods
	pid := n.scope.PID()
	ctx, stop := context.WithCancel(n.ctx)
	var all sync.WaitGroup
	var connected, gone atomic.Int64
	besiege(ctx, n.relay, &all, &connected, &gone)
	besiege(ctx, n.metrics, &all, &connected, &gone)

	all.Go(func() { n.live(ctx) })
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		n.pod()
		time.Sleep(200 * time.Millisecond)
	}
	for give := time.Now().Add(time.Minute); len(n.collector.times()) < n.pods && time.Now().Before(give); { // the loop counts late spans
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	all.Wait()

	t.Log(n.refused())
	late, pods := n.collector.times()[settled:], n.pods-settled
	tardy := pods - len(late)
	machine := quantile(n.controls, 0.99)
	for _, d := range late {
		if d > delay+promised+machine {
			tardy++
		}
	}
	t.Logf("%s beside %d connections, %d made and %d ended:", lasts, 2*hostiles, connected.Load(), gone.Load())
	t.Logf("exports: %d of %d pods, after their end p50 %s p99 %s max %s (%s of it containerd's own); %d late or lost",
		len(late), pods, quantile(late, 0.5), quantile(late, 0.99), quantile(late, 1), delay, tardy)
	if tardy > 1 {
		t.Errorf("%d of %d exports were late or lost, 1 may be", tardy, pods)
	}
	n.lived(pid)
}

// A stopped cniscope costs pods NRI's timeout once, also if containerd exports to it.
func TestAStoppedCniscopeHoldsNoPod(t *testing.T) {
	lasting(t)
	const pods = 15
	n := newNode(t, older, "")
	n.pod() // the first pod warms caches
	var before, stopped []time.Duration
	for range pods {
		before = append(before, n.pod())
	}
	harness.Check(t, syscall.Kill(n.scope.PID(), syscall.SIGSTOP))
	defer func() { _ = syscall.Kill(n.scope.PID(), syscall.SIGCONT) }()
	for range pods {
		stopped = append(stopped, n.pod())
	}
	first, usual := stopped[0], quantile(before, 1)
	rest := quantile(stopped[1:], 1)
	t.Logf("a pod's start, of %d: p50 %s max %s; beside a stopped cniscope the first %s, then p50 %s max %s",
		pods, quantile(before, 0.5), usual, first.Round(time.Millisecond), quantile(stopped[1:], 0.5), rest)
	if first > usual+nriTimeout+promised || rest > usual+promised {
		t.Error("pods waited for a cniscope that is stopped")
	}
	harness.Check(t, syscall.Kill(n.scope.PID(), syscall.SIGCONT))
	arrived := len(n.collector.times())
	n.pod()
	harness.Until(t, "once it goes on, it relays", func() bool { return len(n.collector.times()) > arrived })
}
