package judge

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

const ms = int64(time.Millisecond)

// ran is an image from one millisecond to another.
func ran(name string, from, to int64, children ...*model.Image) *model.Image {
	return &model.Image{
		Program:  model.Program{Name: name, Process: event.Process(name), File: "/usr/sbin/" + name},
		Exit:     model.Exit{Ended: true},
		Start:    from * ms,
		End:      to * ms,
		Children: children,
	}
}

func plugin(name string, from, to int64, children ...*model.Image) *model.Image {
	im := ran(name, from, to, children...)
	im.Run = &model.Run{Plugin: name, Command: "ADD"}
	return im
}

func with(im *model.Image, change func(*model.Image)) *model.Image {
	change(im)
	return im
}

func exit(code uint32) func(*model.Image) { return func(im *model.Image) { im.Code = code } }
func cpu(d int64) func(*model.Image)      { return func(im *model.Image) { im.CPU = d * ms } }

func add(runs ...*model.Image) *model.Operation {
	call := &model.Call{Command: "ADD", IfName: "eth0", Runs: runs, Start: runs[0].Start}
	for _, run := range runs {
		call.End = max(call.End, run.End)
	}
	return &model.Operation{
		Kind: model.Setup, ContainerID: "c1", Calls: []*model.Call{call}, Start: call.Start, End: call.End,
	}
}

var options = Options{
	Thresholds{Command: 250 * time.Millisecond, Call: 2 * time.Second},
	Sampling{Ratio: 0, Keep: []Reason{Slow, Failed, Partial}},
}

func TestWhereTheTimeWent(t *testing.T) {
	for name, test := range map[string]struct {
		op   *model.Operation
		want string
	}{
		"the innermost command is charged": {
			add(plugin("bridge", 0, 100, ran("sh", 10, 60, ran("sleep", 20, 50)))),
			"unexplained/bridge 50ms, command/sh > sleep 30ms, command/sh 20ms",
		},
		"a delegate's own time is its own": {
			add(with(plugin("bridge", 0, 100, with(plugin("host-local", 20, 50), cpu(30))), cpu(5))),
			"unexplained/bridge 65ms, plugin/host-local 30ms, plugin/bridge 5ms",
		},
		"between plugins the runtime has the word": {
			add(with(plugin("bridge", 0, 10), cpu(10)), with(plugin("portmap", 40, 50), cpu(99))),
			"between runs/ 30ms, plugin/bridge 10ms, plugin/portmap 10ms",
		},
		"commands side by side are counted once": {
			add(plugin("p", 0, 40, ran("a", 0, 30), ran("b", 10, 40))),
			"command/b 30ms, command/a 10ms",
		},
		"what outlived its plugin was not waited for": {
			add(plugin("dhcp", 0, 10, with(ran("daemon", 5, 500), outliving)), plugin("p", 20, 30)),
			"between runs/ 10ms, unexplained/dhcp 10ms, unexplained/p 10ms",
		},
		"commands of one name are one part": {
			add(plugin("p", 0, 6, ran("iptables", 0, 2), ran("iptables", 2, 4), ran("iptables", 4, 6))),
			"command/iptables 6ms",
		},
	} {
		t.Run(name, func(t *testing.T) {
			harness.Equal(t, drawn(options.Judge(test.op).Calls[test.op.Calls[0]].Parts), test.want)
		})
	}
}

func TestSlowAndFailed(t *testing.T) {
	rules := options
	rules.Rules = []Rule{{"PowerShell*", 100 * time.Millisecond}, {"sleep", 0}}
	killed := with(plugin("bridge", 0, 10_040), func(im *model.Image) { im.Signal = "SIGKILL" })
	for name, test := range map[string]struct {
		op      *model.Operation
		judge   Options
		slow    []string
		call    time.Duration
		failure string
		kept    string
	}{
		"an ordinary call":          {add(plugin("b", 0, 20, ran("iptables", 0, 10))), options, nil, 0, "", "unsampled"},
		"a slow command":            {add(plugin("b", 0, 400, ran("ps", 0, 300))), options, []string{"ps"}, 0, "", "slow"},
		"a slow call":               {add(plugin("b", 0, 2001)), options, nil, 2 * time.Second, "", "slow"},
		"a rule for one command":    {add(plugin("b", 0, 400, ran("powershell", 0, 101))), rules, []string{"powershell"}, 0, "", "slow"},
		"a rule that lets it go on": {add(plugin("b", 0, 400, ran("sleep", 0, 400))), rules, nil, 0, "", "unsampled"},
		"a command that exits 1 is no failure": {
			add(plugin("b", 0, 9, with(ran("iptables", 0, 1), exit(1)))), options, nil, 0, "", "unsampled",
		},
		"a plugin that exits 1": {add(with(plugin("b", 0, 9), exit(1))), options, nil, 0, "plugin b exited 1", "failed"},
		"a plugin whose last command failed": {
			add(with(plugin("b", 0, 9, ran("ip", 1, 2), with(ran("nft", 2, 3), exit(2))), exit(1))), options, nil, 0,
			"plugin b exited 1; its last command, nft, exited 2", "failed",
		},
		"a plugin that was killed": {add(killed), options, nil, 2 * time.Second, "plugin bridge was killed by SIGKILL after 10s (sender unknown)", "slow, failed"},
		"a delegate that failed is to blame": {
			add(with(plugin("b", 0, 9, with(plugin("host-local", 1, 2), exit(1))), exit(1))), options, nil, 0, "plugin host-local exited 1", "failed",
		},
		"a delegate that failed at first and was tried again is not": {
			add(with(plugin("b", 0, 9, with(plugin("ipam", 1, 2), exit(1)), plugin("ipam", 3, 4)), exit(1))), options, nil, 0, "plugin b exited 1", "failed",
		},
		"a plugin that never ran": {
			func() *model.Operation {
				op := add(plugin("b", 0, 9))
				op.Calls[0].NeverRun = []string{"portmap", "firewall"}
				return op
			}(), options, nil, 0, "plugin portmap, firewall did not run", "failed",
		},
		"what was not seen whole": {
			func() *model.Operation {
				op := add(plugin("b", 0, 9))
				op.Partial = []string{"lost events: ring full"}
				return op
			}(), options, nil, 0, "", "partial",
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := test.judge.Judge(test.op)
			c := j.Calls[test.op.Calls[0]]
			var slow []string
			for im := range j.Slow {
				slow = append(slow, im.Name)
			}
			if !slices.Equal(slow, test.slow) || c.Slow != test.call || c.Failure != test.failure {
				t.Errorf("slow %q, call %s, failure %q", slow, c.Slow, c.Failure)
			}
			var reasons []string
			for _, r := range j.Reasons {
				reasons = append(reasons, string(r))
			}
			if got := strings.Join(reasons, ", "); got != test.kept || j.Keep == (test.kept == "unsampled") {
				t.Errorf("kept: %v, because %s", j.Keep, got)
			}
		})
	}
}

// The hash is part of the contract between nodes and versions, so the selection of 100,000 fixed IDs is fixed, by
// size and digest.
func TestTheRatioIsOfOperationsWithoutAParent(t *testing.T) {
	harness.Slow(t)
	const n, size, digest = 100_000, 10_098, "500a95d6910df90f"
	for parent, trace := range map[string]event.TraceContext{
		"none":      {},
		"sampled":   {Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		"unsampled": {Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"},
	} {
		set := sha256.New()
		kept := 0
		for i := range n {
			op := add(plugin("b", 0, 1))
			op.ContainerID, op.Calls[0].Trace = fmt.Sprintf("%064x", i), trace
			if (Options{Sampling: Sampling{Ratio: 0.1, ParentBased: true}}).Judge(op).Keep {
				kept++
				fmt.Fprintln(set, op.ContainerID)
			}
		}
		got := fmt.Sprintf("%x", set.Sum(nil)[:8])
		switch want, exact := map[string]int{"sampled": n, "unsampled": 0}[parent]; {
		case exact && kept != want, !exact && (kept != size || got != digest):
			t.Errorf("parent %s: kept %d of %d, digest %s", parent, kept, n, got)
		}
	}
}

func TestRatioOneKeepsAllAndZeroNone(t *testing.T) {
	for ratio, want := range map[float64]bool{1: true, 0: false} {
		for i := range 1000 {
			op := add(plugin("b", 0, 1))
			op.ContainerID = fmt.Sprint(i)
			if (Options{Sampling: Sampling{Ratio: ratio}}).Judge(op).Keep != want {
				t.Fatalf("ratio %v: operation %d", ratio, i)
			}
		}
	}
}

func TestCallsWithoutASandboxAreNotSampled(t *testing.T) {
	op := add(plugin("b", 0, 1))
	op.ContainerID = ""
	if j := (Options{Sampling: Sampling{Ratio: 1}}).Judge(op); j.Keep || j.Reasons[0] != NoSandbox {
		t.Errorf("%+v", j)
	}
	op = add(plugin("b", 0, 3000))
	op.ContainerID, op.Calls[0].Command = "", "GC"
	if j := options.Judge(op); !j.Keep {
		t.Error("a slow GC is worth a trace")
	}
	op.Calls[0].Command = "STATUS"
	if j := options.Judge(op); j.Keep || j.Reasons[0] != NoSandbox {
		t.Error("STATUS comes every few seconds; it is counted and no more")
	}
}

// 2,000 spans; and the rejection of an ordinary operation.
func BenchmarkJudge(b *testing.B) {
	for _, n := range []int{60, 2000} {
		var commands []*model.Image
		for i := range n {
			commands = append(commands, ran("iptables", int64(i), int64(i+1)))
		}
		op := add(plugin("bridge", 0, int64(n), commands...))
		b.Run(fmt.Sprint(n, " spans"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				options.Judge(op)
			}
		})
	}
}
