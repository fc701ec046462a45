package judge

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

func TestWhoseRatioCounts(t *testing.T) {
	o := Sampling{Ratio: 0.5, Namespaces: []NamespaceRule{{"kube-*", 0.01}, {"shop", 1}, {"*-test", 0}}, Annotations: []string{"shop", "a-*"}}
	for _, test := range []struct {
		namespace, annotation string
		want                  float64
	}{
		{"default", "", 0.5},
		{"kube-system", "", 0.01},
		{"shop", "", 1},
		{"kube-test", "", 0.01}, // first match
		{"a-test", "", 0},
		{"a-test", "always", 1},
		{"default", "always", 0.5}, // not allowed
		{"kube-system", "never", 0.01},
		{"shopping", "never", 0.5},
		{"", "never", 0.5},
		{"shop", "never", 0},
		{"shop", "0.25", 0.25},
		{"shop", "2", 1}, // no share
		{"shop", "NaN", 1},
		{"shop", "yes please", 1},
	} {
		op := &model.Operation{Pod: event.Pod{Namespace: test.namespace}}
		if test.annotation != "" {
			op.Sandbox = &event.Sandbox{Annotations: map[string]string{Annotation: test.annotation}}
		}
		harness.Equal(t, o.ratio(op), test.want, test.namespace, test.annotation)
	}
}

// 300 operations in three seconds: up to five whole ones in any second.
func TestAStormIsReduced(t *testing.T) {
	var l Limiter
	var whole []int64
	for i := range 300 {
		now := int64(i) * int64(10*time.Millisecond)
		if l.Whole(now, 5) {
			whole = append(whole, now)
		}
	}
	for i := range whole {
		if i >= 5 && whole[i]-whole[i-5] < int64(time.Second) {
			t.Errorf("six whole operations within %s", time.Duration(whole[i]-whole[i-5]))
		}
	}
	harness.Equal(t, len(whole), 15, "whole operations in three seconds")
	if !l.Whole(0, 0) {
		t.Error("0 is no limit")
	}
}

func TestPatternsOfCommands(t *testing.T) {
	o := Thresholds{Command: time.Second, Rules: []Rule{{"PowerShell*", 1}, {"iptables", 2}, {"xtables-*-multi", 3}, {"[", 4}}}
	for _, test := range []struct {
		name, file string
		want       time.Duration
	}{
		{"powershell", `C:\Windows\System32\powershell.exe`, 1},
		{"", `C:\Windows\PowerShell.EXE`, 1},
		{"iptables", "/usr/sbin/xtables-nft-multi", 2}, // first match
		{"ip6tables", "/usr/sbin/xtables-nft-multi", 3},
		{"ip", "/sbin/ip", time.Second},
		{"[", "/usr/bin/[", time.Second}, // a broken pattern matches nothing
	} {
		harness.Equal(t, o.threshold(&model.Image{Program: model.Program{Name: test.name, File: test.file}}), test.want, test.name)
	}
}

func ExampleLimiter() {
	var l Limiter
	for i := range 4 {
		fmt.Print(l.Whole(int64(i), 2), " ")
	}
	// Output: true true false false
}

// 10^6 operations, of which every 50th failed: the number that a backend computes from the thresholds of the kept ones
// is within 4 standard errors of the true one.
func TestABackendCountsByTheThreshold(t *testing.T) {
	harness.Slow(t)
	const n, ratio = 1_000_000, 0.1
	o := Sampling{Ratio: ratio, ParentBased: true, Keep: []Reason{Failed}}
	call := &model.Call{Command: "ADD"}
	ordinary := &Judgement{Calls: map[*model.Call]*Call{call: {}}}
	failed := &Judgement{Calls: map[*model.Call]*Call{call: {Failure: "x"}}}
	counted, kept, sampled := 0.0, 0, 0.0
	for i := range n {
		op := &model.Operation{ContainerID: fmt.Sprintf("%064x", i), Calls: []*model.Call{call}}
		j := ordinary
		if i%50 == 0 {
			j = failed
		} else {
			sampled++
		}
		reasons, said := o.reasons(op, j)
		if reasons[0] == Unsampled {
			continue
		}
		kept++
		state := harness.Must(trace.ParseTraceState(said))(t)
		th, rv, _ := strings.Cut(strings.TrimPrefix(state.Get("ot"), "th:"), ";rv:")
		least := harness.Must(strconv.ParseUint((th + "00000000000000")[:14], 16, 64))(t)
		if random, err := strconv.ParseUint(rv, 16, 64); err != nil || random < least || len(rv) != 14 {
			t.Fatalf("%s is kept", said)
		}
		counted += 1 / (1 - math.Ldexp(float64(least), -56))
	}
	if off, standard := math.Abs(counted-n), math.Sqrt(sampled*(1-ratio)/ratio); off > 4*standard {
		t.Errorf("%d kept count as %.0f, off by %.1f standard errors", kept, counted, off/standard)
	}
}

// Where nothing is left out by a ratio, spans have no threshold.
func TestARatioOfOneNeedsNoThreshold(t *testing.T) {
	op := &model.Operation{ContainerID: "x", Calls: []*model.Call{{Command: "ADD"}}}
	for state, o := range map[string]Sampling{
		"": {Ratio: 1}, "ot=th:0": {Ratio: 1, Annotations: []string{"*"}},
		"ot=th:8": {Ratio: 0.5, Namespaces: []NamespaceRule{{"x", 0}}},
	} {
		if j := (Options{Sampling: o}).Judge(op); j.Keep && !strings.HasPrefix(j.TraceState, state) || j.TraceState == "" != (state == "") {
			t.Errorf("%+v: %q", o, j.TraceState)
		}
	}
}

func TestWhatIsSlowInside(t *testing.T) {
	options := Options{Thresholds{Agent: 50 * time.Millisecond, Lock: 20 * time.Millisecond}, Sampling{Keep: []Reason{Slow}}}
	// served is a call of an agent that waits for a lock.
	served := func(lock model.Interval) func(*model.Image) {
		return func(im *model.Image) {
			called(from(10, 40))(im)
			own := seen(ran("agentd", 10, 40), waited(event.WaitLock, "/run/l", lock))
			connected(im).Work = &model.Work{Own: own, Shared: ran("agentd", 10, 40)}
		}
	}
	for name, test := range map[string]struct {
		run  *model.Image
		want string
	}{
		"an agent that answers in time":            {seen(plugin("p", 0, 100), called(from(10, 60))), "0 agents, 0 locks"},
		"an agent that does not":                   {seen(plugin("p", 0, 100), called(from(10, 61))), "1 agents, 0 locks"},
		"that of a command":                        {plugin("p", 0, 100, seen(ran("c", 0, 100), called(from(10, 61)))), "1 agents, 0 locks"},
		"a connection that stays open":             {seen(plugin("p", 0, 40), called(from(10, 900))), "0 agents, 0 locks"},
		"a lock that is had soon":                  {seen(plugin("p", 0, 100), waited(event.WaitLock, "/run/l", from(10, 30))), "0 agents, 0 locks"},
		"a lock on a file":                         {seen(plugin("p", 0, 100), waited(event.WaitLock, "/run/l", from(10, 31))), "0 agents, 1 locks"},
		"a lock of the kernel":                     {seen(plugin("p", 0, 100), waited(event.WaitMutex, "rtnl", from(10, 31))), "0 agents, 1 locks"},
		"another wait":                             {seen(plugin("p", 0, 100), waited(event.WaitCall, "read", from(10, 90))), "0 agents, 0 locks"},
		"a lock that the agent waits for":          {seen(plugin("p", 0, 100), served(from(10, 31))), "0 agents, 1 locks"},
		"a lock that the agent waits for, shortly": {seen(plugin("p", 0, 100), served(from(10, 29))), "0 agents, 0 locks"},
	} {
		op := add(test.run)
		j := options.Judge(op)
		c := j.Calls[op.Calls[0]]
		got := fmt.Sprintf("%d agents, %d locks", c.SlowAgents, c.SlowLocks)
		if got != test.want || len(j.SlowAgents) != c.SlowAgents || len(j.SlowLocks) != c.SlowLocks {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		harness.Equal(t, slices.Contains(j.Reasons, Slow), c.SlowAgents+c.SlowLocks > 0, name, "kept as slow")
	}
}
