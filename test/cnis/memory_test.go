//go:build linux

package cnis

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/otlptest"
)

const mostMemory = 40

// With a followed agent, a backend and a file, cniscope stays within its memory budget while pods come and go.
func TestMemory(t *testing.T) {
	if !apart(t) {
		return
	}
	n := newNode(t)
	n.observeWith(fmt.Sprintf("[export.otlp]\nendpoint = %q\n", "http://"+otlptest.Collect(t, "127.0.0.1:0", &otlptest.Collector{}).Addr))
	n.startWarmAgent(nil)
	n.warm()
	n.forgetHighest()
	for _, atOnce := range []int{1, 4} {
		for i := range 20 / atOnce {
			pods := n.crowd(fmt.Sprintf("memory-%d-%d", atOnce, i), atOnce)
			for _, p := range pods {
				harness.Check(t, p.err)
			}
			n.remove(pods...)
		}
		now, highest := n.memory("VmRSS"), n.memory("VmHWM")
		t.Logf("resident beside Cilium after 20 pods, %d at once: %.1f MiB, highest %.1f MiB; of its own %.1f MiB, of files %.1f MiB, the budget is %d MiB",
			atOnce, now, highest, n.memory("RssAnon"), n.memory("RssFile"), mostMemory)
		if now > mostMemory {
			t.Errorf("%.1f MiB are resident", now)
		}
	}
}

// forgetHighest resets VmHWM (proc_pid_clear_refs(5)).
func (n *node) forgetHighest() {
	n.Helper()
	harness.Check(n.T, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", n.scope.PID()), []byte("5"), 0))
}

func (n *node) memory(name string) float64 {
	n.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.scope.PID()))
	harness.Check(n.T, err)
	_, after, found := strings.Cut(string(status), "\n"+name+":")
	if !found {
		n.Fatalf("no %s: %s", name, status)
	}
	var kib int
	_, err = fmt.Sscan(after, &kib)
	harness.Check(n.T, err)
	return float64(kib) / 1024
}
