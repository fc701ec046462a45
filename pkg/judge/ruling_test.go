package judge

import (
	"cmp"
	"regexp"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
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
