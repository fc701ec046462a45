package probe

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/test/harness"
)

func TestTheGateOpensForACallAndClosesAfterIt(t *testing.T) {
	for command, want := range map[string][]bool{"ADD": {true, false}, "STATUS": nil} {
		cmd := acting(t, "sleep", "")
		cmd.Env = append(slices.DeleteFunc(cmd.Env, func(v string) bool { return v == "CNI_COMMAND=ADD" }), "CNI_COMMAND="+command)
		var stats Stats
		o := observeProbe(t, Options{Detail: DetailAuto, Linger: 200 * time.Millisecond}, func(p *Probe, _ *observed) {
			harness.Check(t, cmd.Run())
			harness.Until(t, "it looks, and stops looking", func() bool {
				stats = p.Stats()
				return command == "STATUS" || stats.Attached > 0 && !p.kernel.Gate.IsOpen()
			})
		})
		var got []bool
		for _, d := range all[*event.Detail](o) {
			got = append(got, d.On)
		}
		// Other calls on this machine also open the gate.
		if command == "ADD" && !slices.Equal(got[:min(len(got), 2)], want) {
			t.Errorf("the inside was seen %v, want %v", got, want)
		}
		if quiet := !o.foreign(); command == "STATUS" && quiet && len(got) > 0 {
			t.Errorf("STATUS opened the gate: %v", got)
		}
		if command == "ADD" && (stats.Attached < 200*time.Millisecond || stats.Attached > stats.Observed) {
			t.Errorf("attached for %s of %s", stats.Attached, stats.Observed)
		}
	}
}

func TestTheTablesAreEmptyWhenTheGateIsClosed(t *testing.T) {
	cmd, address := plugin(t, "several", "(sleep 0.05; true) & sleep 0.1; wait"), filepath.Join(t.TempDir(), "agent.sock")
	startAgent(t, address) // it waits on when it is followed no more
	observeProbe(t, Options{Detail: DetailAuto, Linger: 200 * time.Millisecond}, func(p *Probe, _ *observed) {
		harness.Check(t, errors.Join(cmd.Run(), acting(t, "dial", "unix "+address).Run()))
		harness.Eventually(t, func() error {
			for table, n := range entries(p.kernel) {
				if n != 0 {
					return fmt.Errorf("%s: %d", table, n)
				}
			}
			if p.kernel.Gate.IsOpen() {
				return errors.New("the gate is open")
			}
			return nil
		})
	})
}

// With DetailAlways the gate never closes.
func TestWhoWaitsIsCountedAgain(t *testing.T) {
	harness.Root(t)
	side := ownProbing(t, Options{Detail: DetailAlways}).probe.kernel
	waiting := make([]byte, side.Inside.Waiting.ValueSize())
	for i := range uint32(64) {
		waiting[4*i] = 1
		harness.Check(t, side.Life.Calls.Put(1<<30+i, kernel.LifeCall{Since: 1, Tgid: 1 << 30}))
	}
	waiting[4*64] = 1
	harness.Check(t, errors.Join(
		side.Inside.Waiting.Put(uint32(0), waiting),
		side.Life.Calls.Put(uint32(1<<30+64), kernel.LifeCall{Since: 1, Tgid: 1<<30 + 1}),
	))
	side.ForgetGone(0, map[uint32]bool{1<<30 + 1: true}, func(kernel.Key) bool { return false })
	got := make([]byte, len(waiting))
	harness.Check(t, side.Inside.Waiting.Lookup(uint32(0), &got))
	if want := append(make([]byte, 4*64), waiting[4*64:]...); !bytes.Equal(got, want) {
		t.Errorf("%d threads wait, want 1", len(bytes.ReplaceAll(got, []byte{0}, nil)))
	}
}

func entries(side *kernel.Side) map[string]int {
	waiting := make([]byte, side.Inside.Waiting.ValueSize())
	_ = side.Inside.Waiting.Lookup(uint32(0), &waiting)
	return map[string]int{
		"waiting":   len(bytes.Trim(waiting, "\x00")),
		"processes": length[uint32, kernel.LifeProcess](side.Life.Processes), "calls": length[uint32, kernel.LifeCall](side.Life.Calls),
		"losses": length[kernel.LifeLostKey, uint64](side.Life.Losses), "conns": length[uint64, kernel.InsideConn](side.Inside.Conns),
		"pairs":       length[kernel.InsidePair, kernel.InsideHalf](side.Inside.Pairs),
		"contentions": length[uint32, kernel.InsideContended](side.Inside.Contentions),
	}
}

func length[K, V any](table *ebpf.Map) (n int) {
	if table == nil { // no system-call tracing
		return -1
	}
	kernel.Each(table, func(*K, *V) { n++ })
	return n
}
