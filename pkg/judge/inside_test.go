package judge

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

func seen(im *model.Image, change ...func(*model.Image)) *model.Image {
	for _, f := range change {
		f(im)
	}
	return im
}

func fact(im *model.Image, when model.Interval, what model.What) {
	im.Facts = append(im.Facts, &model.Fact{When: when, What: what})
}

func connected(im *model.Image) *model.Connection {
	for _, c := range model.Each[*model.Connection](im.Facts) {
		return c
	}
	return nil
}

func from(start, end int64) model.Interval {
	return model.Interval{Start: start * ms, End: end * ms}
}

func waited(kind event.WaitKind, name string, when model.Interval, holder ...event.Actor) func(*model.Image) {
	return func(im *model.Image) {
		w := &model.Wait{Kind: kind, Name: name}
		if kind == event.WaitLock {
			w.Name, w.Path = "flock", name
		}
		if len(holder) > 0 {
			w.Holder = &holder[0]
		}
		fact(im, when, w)
	}
}

func asked(name string, when model.Interval) func(*model.Image) {
	return func(im *model.Image) {
		fact(im, when, &model.Request{Request: &event.Request{Name: name}})
	}
}

func slept(when model.Interval) func(*model.Image) {
	return func(im *model.Image) { im.Asleep = append(im.Asleep, when) }
}

func polled(when model.Interval) func(*model.Image) {
	return func(im *model.Image) { im.Polling = append(im.Polling, when) }
}

func called(when model.Interval) func(*model.Image) {
	return func(im *model.Image) {
		fact(im, when, &model.Connection{Address: "/run/agent.sock", Tries: 1})
	}
}

func detects(when model.Interval) func(*model.Image) {
	return func(im *model.Image) {
		fact(im, when, &model.Detection{Address: "fd00::5", On: "eth0", State: event.AddressReady})
	}
}

func drawn(parts []Part) string {
	var got []string
	for _, p := range parts {
		got = append(got, fmt.Sprintf("%s/%s %s", p.Kind, p.Name, p.Time))
	}
	return strings.Join(got, ", ")
}

func TestWhatAPluginWaitedFor(t *testing.T) {
	for name, test := range map[string]struct {
		run  *model.Image
		want string
	}{
		"a lock is stronger than all that is known beside it": {
			seen(plugin("p", 0, 100), polled(from(0, 100)), slept(from(5, 95)), called(from(10, 90)), detects(from(15, 85)),
				waited(event.WaitCall, "read", from(20, 80)), asked("RTM_NEWLINK", from(25, 75)), waited(event.WaitMutex, "rtnl", from(30, 70)),
				waited(event.WaitLock, "/run/l", from(40, 60))),
			"kernel lock/rtnl 20ms, lock//run/l 20ms, IPv6 DAD/p 10ms, agent//run/agent.sock 10ms, network configuration/RTM_NEWLINK 10ms, sleep/p 10ms, system call/read 10ms, waiting/p 10ms",
		},
		"what is left is the plugin's own, as far as it was on a CPU": {
			with(seen(plugin("p", 0, 100), waited(event.WaitLock, "/run/l", from(0, 60))), cpu(30)),
			"lock//run/l 60ms, plugin/p 30ms, unexplained/p 10ms",
		},
		"a program that sleeps in one thread and has others that wait sleeps": {
			with(seen(plugin("p", 0, 1003), slept(from(2, 1002)), polled(from(1, 1001))), cpu(3)),
			"sleep/p 1s, plugin/p 3ms",
		},
		"one that computes beside threads that wait computes": {
			with(seen(plugin("p", 0, 1000), slept(from(0, 500)), slept(from(501, 1000)), polled(from(0, 1000))), cpu(998)),
			"plugin/p 998ms, sleep/p 2ms",
		},
		"one that has a connection open and computes, computes; and calls for the rest": {
			with(seen(plugin("p", 0, 1000), called(from(0, 1000)), slept(from(0, 500))), cpu(400)),
			"agent//run/agent.sock 600ms, plugin/p 400ms",
		},
		"in a request the kernel worked: its CPU is not the plugin's": {
			with(seen(plugin("p", 0, 100), asked("RTM_NEWLINK", from(0, 50)), slept(from(50, 100))), cpu(52)),
			"network configuration/RTM_NEWLINK 50ms, sleep/p 48ms, plugin/p 2ms",
		},
		"but on a CPU nobody waits for a mutex": {
			with(seen(plugin("p", 0, 100), asked("RTM_NEWLINK", from(0, 50)), waited(event.WaitMutex, "rtnl", from(0, 45)), slept(from(50, 100))), cpu(15)),
			"kernel lock/rtnl 45ms, sleep/p 40ms, plugin/p 10ms, network configuration/RTM_NEWLINK 5ms",
		},
		"a command is its own, unless others hold it up": {
			with(plugin("p", 0, 100, seen(ran("iptables", 0, 100), slept(from(0, 50)), waited(event.WaitLock, "/run/xtables.lock", from(50, 90)))), cpu(99)),
			"command/iptables 60ms, lock//run/xtables.lock 40ms",
		},
		"while a command runs, it is the innermost": {
			with(seen(plugin("p", 0, 100, ran("ip", 20, 80)), waited(event.WaitCall, "read", from(10, 90))), cpu(99)),
			"command/ip 60ms, plugin/p 20ms, system call/read 20ms",
		},
		"what is too short to be placed explains what nothing else does": {
			seen(plugin("p", 0, 100), slept(from(0, 50)), func(im *model.Image) {
				im.Tallies[model.FactMutex] = model.Tally{Count: 40, Time: 20 * ms}
				im.Tallies[model.FactQuery] = model.Tally{Count: 400, Time: 200 * ms}
			}),
			"sleep/p 50ms, network configuration/ 30ms, kernel lock/ 20ms",
		},
		"nothing is charged outside of its image": {
			with(seen(plugin("p", 50, 100), slept(from(0, 60)), waited(event.WaitLock, "/run/l", from(90, 500))), cpu(99)),
			"plugin/p 40ms, lock//run/l 10ms",
		},
	} {
		t.Run(name, func(t *testing.T) {
			op := add(test.run)
			harness.Equal(t, drawn(options.Judge(op).Calls[op.Calls[0]].Parts), test.want)
		})
	}
}

func TestTheBiggestPartInWords(t *testing.T) {
	proxy := event.Actor{PID: 812, Name: "kube-proxy"}
	for want, run := range map[string]*model.Image{
		"iptables waited for file lock /run/xtables.lock, held by kube-proxy (pid 812)": plugin("p", 0, 100,
			seen(ran("iptables", 0, 100), waited(event.WaitLock, "/run/xtables.lock", from(5, 90), proxy))),
		"plugin p waited for file lock /run/l (3 times), held by kube-proxy (pid 812)": seen(plugin("p", 0, 100),
			waited(event.WaitLock, "/run/l", from(0, 10), event.Actor{PID: 1, Name: "other"}), waited(event.WaitLock, "/run/l", from(10, 80), proxy),
			waited(event.WaitLock, "/run/l", from(80, 90))),
		"ip6tables waited for file lock /run/xtables.lock (2 times)": plugin("p", 0, 100,
			seen(ran("iptables", 0, 40), waited(event.WaitLock, "/run/xtables.lock", from(10, 40))),
			seen(ran("ip6tables", 40, 100), waited(event.WaitLock, "/run/xtables.lock", from(40, 90)))),
		"plugin p waited for kernel lock rtnl, held by pid 812 (child of kube-proxy)": seen(plugin("p", 0, 100), waited(event.WaitMutex, "rtnl", from(0, 90), event.Actor{PID: 812, Parent: "kube-proxy"})),
		"plugin p waited for a kernel lock, held by bridge (pid 5)":                   seen(plugin("p", 0, 100), waited(event.WaitMutex, "kernel", from(0, 90), event.Actor{PID: 5, Name: "bridge"})),
		"p waited for network configuration RTM_NEWLINK":                              seen(plugin("p", 0, 100), asked("RTM_NEWLINK", from(0, 90))),
		"p waited in system call fsync":                                               seen(plugin("p", 0, 100), waited(event.WaitCall, "fsync", from(0, 90))),
		"plugin p waited for IPv6 duplicate address detection of fd00::5 on eth0":     seen(plugin("p", 0, 100), detects(from(0, 90))),
		"plugin p waited for /run/agent.sock":                                         seen(plugin("p", 0, 100), called(from(0, 90))),
		"plugin p waited for agentd at /run/agent.sock":                               seen(plugin("p", 0, 100), called(from(0, 90)), func(im *model.Image) { connected(im).Agent = &event.Actor{Name: "agentd"} }),
		"plugin p waited for /run/agent.sock, refused 3 times: ECONNREFUSED":          seen(plugin("p", 0, 100), called(from(0, 90)), func(im *model.Image) { connected(im).Tries, connected(im).Error = 3, "ECONNREFUSED" }),
		"plugin p slept": seen(plugin("p", 0, 100), slept(from(0, 90))),
		"plugin p waited for something unobserved":               seen(plugin("p", 0, 100), polled(from(0, 90))),
		"waiting for kernel locks, briefly each time (40 times)": seen(plugin("p", 0, 100), func(im *model.Image) { im.Tallies[model.FactMutex] = model.Tally{Count: 40, Time: 90 * ms} }),
		"p configured the network in short requests (40 times)":  seen(plugin("p", 0, 100), func(im *model.Image) { im.Tallies[model.FactQuery] = model.Tally{Count: 40, Time: 90 * ms} }),
		"plugin p did unobserved work":                           seen(plugin("p", 0, 100)),
	} {
		op := add(run)
		harness.Equal(t, options.Judge(op).Calls[op.Calls[0]].Parts[0].String(), want)
	}
}

func TestWhatAPluginSaysOfItsFailure(t *testing.T) {
	for name, test := range map[string]struct {
		result  event.Result
		code    uint32
		command string
		want    string
	}{
		"code and message": {event.Result{Code: 11, Message: "no address left"}, 1, "ADD", `plugin p failed (code 11): "no address left"`},
		"a code":           {event.Result{Code: 11}, 1, "ADD", "plugin p failed (code 11)"},
		"a message":        {event.Result{Message: "no"}, 1, "ADD", `plugin p failed: "no"`},
		"a panic":          {event.Result{Stderr: "panic: runtime error: index out of range (main.go:41)"}, 2, "ADD", "plugin p panicked: runtime error: index out of range (main.go:41)"},
		"a fatal error":    {event.Result{Stderr: "fatal error: out of memory"}, 2, "ADD", "plugin p crashed: fatal error: out of memory"},
		"last words":       {event.Result{Stderr: "p: line 3: ipset: command not found"}, 127, "ADD", `plugin p failed: "p: line 3: ipset: command not found"`},
		"and no JSON":      {event.Result{Stderr: "panic: no", Invalid: "no valid JSON at byte 1 of 16"}, 2, "ADD", "plugin p panicked: no"},
		"no JSON":          {event.Result{Invalid: "no valid JSON at byte 1 of 16"}, 2, "ADD", "plugin p exited 2: wrote no valid JSON at byte 1 of 16"},
		"no JSON but text": {event.Result{Message: "to retry", Invalid: "no valid JSON at byte 1 of 16"}, 1, "ADD", `plugin p failed: "to retry"`},
		"no JSON, and it took that for a success": {event.Result{Invalid: "no valid JSON at byte 1 of 16"}, 0, "ADD", "plugin p wrote no valid JSON at byte 1 of 16"},
		"which nobody reads of a DEL":             {event.Result{Invalid: "no valid JSON at byte 1 of 16"}, 0, "DEL", ""},
		"a result is no failure":                  {event.Result{IPs: []string{"10.0.0.1"}}, 0, "ADD", ""},
	} {
		run := with(seen(plugin("p", 0, 9), func(im *model.Image) { im.Run.Result = &test.result }), exit(test.code))
		run.Run.Command = test.command
		op := add(run)
		harness.Equal(t, options.Judge(op).Calls[op.Calls[0]].Failure, test.want, name)
	}
}

// Overlapping processes and waits are a partition.
func TestThePartsSumExactly(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var grow func(depth int) *model.Image
	some := func() model.Interval {
		start := random.Int64N(1500)
		return from(start, start+random.Int64N(300))
	}
	grow = func(depth int) *model.Image {
		start := random.Int64N(1000)
		im := ran(fmt.Sprint("c", random.IntN(5)), start, start+random.Int64N(500))
		if random.IntN(2) == 0 {
			im = plugin(fmt.Sprint("p", random.IntN(5)), start, im.End/ms)
		}
		im.CPU = random.Int64N(600 * ms)
		seen(im)
		for range random.IntN(8) {
			[]func(*model.Image){
				waited(event.WaitLock, "/run/l", some()), waited(event.WaitMutex, "rtnl", some()), waited(event.WaitCall, "read", some()),
				asked("RTM_NEWLINK", some()), slept(some()), polled(some()), called(some()), detects(some()),
				func(im *model.Image) { im.Tallies[model.FactMutex].Time += random.Int64N(100 * ms) },
			}[random.IntN(9)](im)
		}
		for range random.IntN(4) * min(depth, 1) {
			im.Children = append(im.Children, grow(depth-1))
		}
		return im
	}
	for range 2000 {
		op := add(plugin("first", 0, random.Int64N(1500), grow(4), grow(4)), grow(2))
		op.Calls[0].Runs[1].Run = &model.Run{Plugin: "second", Command: "ADD"}
		c := options.Judge(op).Calls[op.Calls[0]]
		var sum time.Duration
		for _, p := range c.Parts {
			if p.Time <= 0 {
				t.Fatalf("a part of %s", p.Time)
			}
			sum += p.Time
		}
		if sum != c.Took {
			t.Fatalf("parts sum to %s of %s", sum, c.Took)
		}
		e := divide(op.Calls[0], &Call{Took: c.Took})
		for i, rule := range rules() {
			if f := rule(e); f != nil && (f.time < 0 || f.time > c.Took || f.Cause == "" || f.Says == "" && f.time > 0) {
				t.Fatalf("rule %d explains %s of %s by %s: %s", i, f.time, c.Took, f.Cause, f.Says)
			}
		}
	}
}

// 2,000 spans, most of them inside.
func BenchmarkJudgeInside(b *testing.B) {
	var commands []*model.Image
	for i := range int64(200) {
		commands = append(commands, seen(ran("iptables", 10*i, 10*i+5), waited(event.WaitLock, "/run/xtables.lock", from(10*i, 10*i+4))))
	}
	run := seen(plugin("bridge", 0, 2000, commands...))
	for i := range int64(400) {
		asked("RTM_NEWLINK", from(5*i+1, 5*i+2))(run)
		waited(event.WaitMutex, "rtnl", from(5*i+1, 5*i+3))(run)
		slept(from(5*i, 5*i+4))(run)
		called(from(5*i, 5*i+5))(run)
	}
	op := add(run)
	b.ReportAllocs()
	for b.Loop() {
		options.Judge(op)
	}
}
