package judge

import (
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// 2,000 spans: the verdict lasts up to 1 ms.
func BenchmarkVerdict(b *testing.B) {
	var commands []*model.Image
	for i := range int64(500) {
		commands = append(commands, seen(ran("iptables", 10*i, 10*i+5, ran("sh", 10*i+1, 10*i+4)), waited(event.WaitLock, "/run/xtables.lock", from(10*i, 10*i+2))))
	}
	run := seen(plugin("bridge", 0, 5000, commands...))
	for i := range int64(200) {
		asked("RTM_NEWLINK", from(5*i+1, 5*i+2))(run)
		waited(event.WaitMutex, "rtnl", from(5*i+1, 5*i+3))(run)
		dialled("tcp", "10.0.0.1:6443", from(5*i, 5*i+5))(run)
	}
	op := add(run)
	b.ReportAllocs()
	for b.Loop() {
		if strict.Judge(op).Calls[op.Calls[0]].Verdict == nil {
			b.Fatal("no verdict")
		}
	}
	if each := b.Elapsed() / time.Duration(b.N); each > time.Millisecond {
		b.Logf("%s an operation", each)
	}
}
