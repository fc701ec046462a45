package judge

import (
	"cmp"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

type ruling struct {
	op *model.Operation
	// cause is empty if there is no verdict.
	cause Cause
	// says and remedy are regular expressions.
	says, remedy string
	// report is not compared if empty; none is "-".
	report string
}

var strict = Options{Thresholds{Command: time.Hour, Call: 100 * time.Millisecond}, Sampling{Ratio: 1}}

func rulings(t *testing.T, table map[string]ruling) {
	t.Helper()
	for name, r := range table {
		t.Run(name, func(t *testing.T) {
			t.Helper()
			v := strict.Judge(r.op).Calls[r.op.Calls[0]].Verdict
			if v == nil {
				v = &Verdict{}
			}
			if v.Cause != r.cause {
				t.Errorf("the cause is %q, want %q: %s", v.Cause, r.cause, v.Says)
			}
			for _, text := range []struct{ got, want string }{{v.Says, r.says}, {v.Remedy, r.remedy}} {
				if !regexp.MustCompile(text.want).MatchString(text.got) {
					t.Errorf("\n got %s\nwant %s", text.got, text.want)
				}
			}
			plain(t, v.Remedy)
			if got := cmp.Or(v.Report, "-"); r.report != "" && got != r.report {
				t.Errorf("the report is %q, want %q", v.Report, r.report)
			}
		})
	}
}

func delayed(d int64) func(*model.Image) {
	return func(im *model.Image) { im.RunDelay = d * ms }
}

func outliving(im *model.Image) { im.Outlived = true }

func killed(im *model.Image) { im.Signal = "SIGKILL" }

func several(n int, one func(int64) *model.Image) (all []*model.Image) {
	for i := range int64(n) {
		all = append(all, one(i))
	}
	return all
}

func dialled(network, address string, when model.Interval, change ...func(*model.Connection)) func(*model.Image) {
	return func(im *model.Image) {
		c := &model.Connection{Network: network, Address: address, Tries: 1}
		for _, f := range change {
			f(c)
		}
		if c.Work != nil {
			for _, work := range []*model.Image{c.Work.Own, c.Work.Shared} {
				work.Start, work.End = when.Start, when.End
			}
		}
		fact(im, when, c)
	}
}

func turnedDown(tries int, why string) func(*model.Connection) {
	return func(c *model.Connection) { c.Tries, c.Error = tries, why }
}

// served adds a server's work for this call and for unknown ones.
func served(own, shared []*model.Image) func(*model.Connection) {
	return func(c *model.Connection) {
		image := func(children []*model.Image) *model.Image {
			return &model.Image{Program: model.Program{Name: "agentd"}, Exit: model.Exit{Ended: true}, Children: children}
		}
		c.Agent = &event.Actor{PID: 44, Name: "agentd"}
		c.Work = &model.Work{Own: image(own), Shared: image(shared)}
		for _, im := range shared {
			m := model.Meanwhile{When: model.Interval{Start: im.Start, End: im.End}, Image: im, Perhaps: true}
			if im.Attribution != nil {
				m.Attribution = *im.Attribution
			}
			c.Work.Meanwhile = append(c.Work.Meanwhile, m)
		}
	}
}

// refused is a packet filter's rule that the kernel refused.
func refused(name, errno string, when model.Interval) func(*model.Image) {
	return func(im *model.Image) {
		fact(im, when, &model.Request{
			Request: &event.Request{Protocol: "nf_tables", Verb: event.VerbAdd, Name: name}, Answer: &event.Answer{Error: errno},
		})
	}
}

func wrote(message string) func(*model.Image) {
	return func(im *model.Image) { im.Run.Result = &event.Result{Code: 11, Message: message} }
}

func TestVerdicts(t *testing.T) {
	lock := waited(event.WaitLock, "/run/l", from(0, 450))
	rulings(t, map[string]ruling{
		"an ordinary fast call has none": {op: add(seen(plugin("p", 0, 99), waited(event.WaitLock, "/run/l", from(0, 90))))},
		"a slow one has": {
			op: add(seen(plugin("p", 0, 500), lock)), cause: CauseLock, says: `^450ms of 500ms: plugin p waited for file lock /run/l$`,
		},
		"where the first cause is less than half, the second is worth a word": {
			op:    add(seen(plugin("p", 0, 1000), lock, slept(from(450, 800)))),
			cause: CauseLock, says: `^450ms of 1s: plugin p waited for file lock /run/l; 350ms: plugin p slept$`,
		},
		"one that was killed is explained by what it waited for": {
			op:    add(with(seen(plugin("p", 0, 500), lock), killed)),
			cause: CauseLock, says: `^450ms of 500ms: plugin p waited for file lock /run/l; then plugin p was killed$`,
		},
		"one that was killed at once is not": {
			op: add(with(seen(plugin("p", 0, 20), lock), killed)), cause: CauseFailed, says: `^plugin p was killed by SIGKILL after 20ms \(sender unknown\)$`,
		},
		"a write to the CNI folder meanwhile blocked the others": {
			op: but(add(seen(plugin("p", 0, 500), lock)), func(c *model.Call) { c.Reconfigured = 200 * ms }), cause: CauseLock,
			says: `waited for file lock /run/l; a file in the CNI directory was written during this call, so other CNI calls waited up to 300ms for this call to end$`,
		},
		"a call that hung has one, whatever the limit": {
			op: but(add(seen(plugin("p", 0, 90), waited(event.WaitLock, "/run/l", from(0, 80)))), func(c *model.Call) { c.Hung = true }), cause: CauseLock, says: `^80ms of 90ms`,
		},
		"what a command left behind did, nobody waited for": {
			op:    add(seen(plugin("p", 0, 500, with(ran("daemon", 10, 900), outliving)), slept(from(20, 500)))),
			cause: CauseSleep, says: `^480ms of 500ms: plugin p slept$`,
		},
		"but where the plugin was killed, it may well have waited": {
			op:    add(with(seen(plugin("p", 0, 500, with(ran("powerd", 10, 900), outliving))), killed)),
			cause: CauseCommand, says: `^490ms of 500ms: plugin p ran powerd; then plugin p was killed$`,
		},
	})
}

func but(op *model.Operation, change func(*model.Call)) *model.Operation {
	change(op.Calls[0])
	return op
}

// Users of one namespace see no pods of others, nor work that may be theirs.
func TestOwn(t *testing.T) {
	const lock = "/var/lib/cni/networks/pods/lock"
	held := func(by event.Pod) *model.Operation {
		op := add(plugin("bridge", 0, 900, seen(plugin("host-local", 10, 800),
			waited(event.WaitLock, lock, from(20, 790), event.Actor{PID: 7, Name: "host-local", Parent: "bridge"}),
			func(im *model.Image) { im.Facts[0].What.(*model.Wait).Blame = &model.Blame{Pod: by} })))
		op.Pod = event.Pod{Namespace: "shop", Name: "web-0"}
		return op
	}
	for name, test := range map[string]struct {
		op      *model.Operation
		says    string // a part of it
		own     string // a part of it; empty if the same
		certain bool
	}{
		"another namespace's pod has the lock": {
			held(event.Pod{Namespace: "bank", Name: "vault-0"}), "host-local (pid 7, child of bridge) for pod bank/vault-0", "host-local (pid 7, child of bridge) for another pod", true,
		},
		"one of the same namespace": {held(event.Pod{Namespace: "shop", Name: "web-1"}), "for pod shop/web-1", "", true},
		"nobody known":              {held(event.Pod{}), "held by host-local", "", true},
	} {
		v := strict.Judge(test.op).Calls[test.op.Calls[0]].Verdict
		if v == nil {
			t.Fatal(name)
		}
		if !strings.Contains(v.Says, test.says) || (v.Own == "") != (test.own == "") || !strings.Contains(v.Own, test.own) || v.Certain != test.certain {
			t.Errorf("%s: %+v", name, v)
		}
		if strings.Contains(v.Own, "vault") {
			t.Errorf("%s: %s", name, v.Own)
		}
	}
}

// A name can be a prefix of another.
func TestOwnLeavesNoPieceOfAName(t *testing.T) {
	blamed := func(name string) *model.Wait {
		return &model.Wait{Blame: &model.Blame{Pod: event.Pod{Namespace: "bank", Name: name}}}
	}
	e := &evidence{namespace: "shop", waits: []wait{{what: blamed("db")}, {what: blamed("db-vault")}}}
	own := e.own("held by x for pod bank/db-vault; held by y for pod bank/db")
	harness.Equal(t, own, "held by x for another pod; held by y for another pod")
}

// Work for an unknown caller is uncertain, and hidden from other namespaces.
func TestOwnOfCandidates(t *testing.T) {
	op := add(seen(plugin("antrea", 0, 2300), dialled("unix", "/run/antrea.sock", from(10, 2280), served(nil, []*model.Image{
		seen(ran("secret-tool", 20, 2270), waited(event.WaitLock, "/var/lib/bank/lock", from(20, 2260))),
	}))))
	v := strict.Judge(op).Calls[op.Calls[0]].Verdict
	if v == nil {
		t.Fatal("there is no verdict")
	}
	told := v.Own
	if told == "" {
		told = v.Says
	}
	if strings.Contains(told, "bank") || strings.Contains(told, "secret") {
		t.Errorf("%+v", v)
	}
	if strings.Contains(v.Says, "bank") && v.Certain {
		t.Errorf("it is certain: %+v", v)
	}
}

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
