package events

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/test/harness"
)

func notice(pod int, cause string) Notice {
	return Notice{
		Namespace: "shop", Pod: fmt.Sprintf("web-%d", pod), UID: fmt.Sprint("u-", pod), Type: Normal,
		Reason: Slow, Action: "ADD", IfName: "eth0", Cause: cause, Note: cause,
	}
}

// node is a ledger with a clock and an API server that may be down.
type node struct {
	*Ledger
	now    time.Time
	away   bool
	writes []time.Time
	events map[string]*Write
}

func newNode() *node {
	return &node{Ledger: NewLedger(), now: time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC), events: map[string]*Write{}}
}

// pass advances the time and makes permitted writes.
func (n *node) pass(d time.Duration) {
	for end := n.now.Add(d); ; {
		w, wait := n.Next(n.now)
		if w == nil {
			if n.now.Add(wait).After(end) {
				n.now = end
				return
			}
			n.now = n.now.Add(wait)
			continue
		}
		n.writes = append(n.writes, n.now)
		if n.away {
			n.Done(w, Again, n.now)
			continue
		}
		n.events[w.Name] = w
		n.Done(w, Written, n.now)
	}
}

// most is the maximum number of writes in any minute.
func (n *node) most() (most int) {
	for i, from := range n.writes {
		count := 0
		for _, at := range n.writes[i:] {
			if at.Sub(from) < time.Minute {
				count++
			}
		}
		most = max(most, count)
	}
	return most
}

func TestManySlowPodsAtOnceMakeTenEventsAMinute(t *testing.T) {
	n := newNode()
	for i := range 135 {
		n.Offer(notice(i, "file_lock"), n.now)
	}
	n.pass(10 * time.Minute)
	if n.most() > PerMinute || n.most() > perCause {
		t.Errorf("%d writes in a minute", n.most())
	}
	if len(n.events)+n.LeftOut() != 135 || len(n.events) != maxWaiting {
		t.Errorf("%d Events, %d left out", len(n.events), n.LeftOut())
	}
	said := false
	for _, w := range n.events {
		said = said || strings.Contains(w.Note, "(115 more pod setups and teardowns on this node with this cause got no Event")
	}
	if !said {
		t.Error("no Event says how many got none")
	}
}

func TestOneCauseLeavesRoomForAnother(t *testing.T) {
	n := newNode()
	for i := range 135 {
		n.Offer(notice(i, "file_lock"), n.now)
	}
	for i := range 4 {
		n.Offer(notice(1000+i, "sleep"), n.now)
	}
	n.pass(time.Second)
	got := map[string]int{}
	for _, w := range n.events {
		got[w.Cause]++
	}
	if got["file_lock"] != perCause || got["sleep"] != PerMinute-perCause {
		t.Errorf("%v", got)
	}
	n.pass(5 * time.Minute)
	if n.most() > PerMinute {
		t.Errorf("%d writes in a minute", n.most())
	}
}

func TestWhatFailedComesFirst(t *testing.T) {
	n := newNode()
	for i := range maxWaiting {
		n.Offer(notice(i, "file_lock"), n.now)
	}
	failed := notice(999, "plugin_error")
	failed.Type, failed.Reason = Warning, Failed
	n.Offer(failed, n.now)
	if w, _ := n.Next(n.now); w == nil || w.Pod != "web-999" {
		t.Errorf("first comes %+v", w)
	}
	harness.Equal(t, n.LeftOut(), 1, "are left out")
}

func TestRepeatedOperationsOfAPodAreASeries(t *testing.T) {
	n := newNode()
	for range 30 { // kubelet's retries
		n.Offer(Notice{
			Namespace: "shop", Pod: "web", UID: "u", Type: Warning, Reason: Failed, Action: "ADD",
			Cause: "plugin_error", Time: n.now,
		}, n.now)
		n.pass(10 * time.Second)
	}
	n.pass(2 * time.Minute)
	if len(n.events) != 1 {
		t.Fatalf("%d Events", len(n.events))
	}
	for _, w := range n.events {
		if w.Create || w.Count != 30 || !w.Last.Equal(n.now.Add(-2*time.Minute-10*time.Second)) {
			t.Errorf("the series is %+v", w)
		}
	}
	if len(n.writes) > 14 {
		t.Errorf("%d writes for one series of 5 minutes", len(n.writes))
	}
	n.pass(idle)
	n.Offer(Notice{
		Namespace: "shop", Pod: "web", UID: "u", Type: Warning, Reason: Failed, Action: "ADD",
		Cause: "plugin_error", Time: n.now,
	}, n.now)
	n.pass(time.Second)
	harness.Equal(t, len(n.events), 2, "much later it is not an Event of its own")
}

// Pods that fail forever use up to half of the writes.
func TestSeriesLeaveRoomForWhatIsNew(t *testing.T) {
	n := newNode()
	again := func() {
		for i := range 20 {
			n.Offer(notice(i, fmt.Sprint("cause-", i%4)), n.now)
		}
	}
	for range 20 {
		again()
		n.pass(15 * time.Second)
	}
	before := len(n.events)
	for i := range PerMinute / share {
		n.Offer(notice(1000+i, fmt.Sprint("new-", i)), n.now)
	}
	n.pass(time.Second)
	harness.Equal(t, len(n.events)-before, PerMinute/share, "new Events at once")
	if n.most() > PerMinute {
		t.Errorf("%d writes in a minute", n.most())
	}
}

func TestNamesOfEventsAreDistinctAndFit(t *testing.T) {
	n := newNode()
	long := notice(1, "a")
	long.Pod = strings.Repeat("a", 199) + "-" + strings.Repeat("b", 53)
	for _, cause := range []string{"a", "b", "c"} {
		long.Cause = cause
		n.Offer(long, n.now)
	}
	n.pass(time.Second)
	harness.Equal(t, len(n.events), 3, "names")
	for name := range n.events {
		if len(name) > 253 || strings.Contains(name, "-.") {
			t.Errorf("an Event is called %s", name)
		}
	}
}

func TestAnOutageMakesNothingGrow(t *testing.T) {
	n := newNode()
	n.away = true
	for i := range 7200 {
		slow := notice(i, fmt.Sprint("cause-", i%5))
		slow.Time = n.now
		n.Offer(slow, n.now)
		n.pass(time.Second)
	}
	if len(n.all) > maxWaiting+1 || len(n.Ledger.writes) > PerMinute {
		t.Errorf("%d notices, %d writes are remembered", len(n.all), len(n.Ledger.writes))
	}
	if n.most() > PerMinute {
		t.Errorf("%d attempts in a minute", n.most())
	}
	if got := len(n.writes); got > 150 {
		t.Errorf("%d attempts in two hours: it does not wait longer and longer", got)
	}
	n.away = false
	n.pass(10 * time.Minute)
	if len(n.events) == 0 || len(n.events)+n.LeftOut() != 7200 {
		t.Errorf("%d Events, %d left out", len(n.events), n.LeftOut())
	}
	for _, w := range n.events {
		if age := n.now.Sub(w.Time); age > time.Hour {
			t.Errorf("an Event of %s ago", age)
		}
	}
}

func TestWhatIsWrittenIsBoundedToo(t *testing.T) {
	n := newNode()
	for i := range 5000 {
		n.Offer(notice(i, fmt.Sprint("cause-", i%5)), n.now)
		n.pass(6 * time.Second)
		if len(n.all) > maxSeries+maxWaiting+1 {
			t.Fatalf("%d are remembered", len(n.all))
		}
	}
	if len(n.events)+n.LeftOut() < 4980 {
		t.Errorf("%d Events, %d left out", len(n.events), n.LeftOut())
	}
}

func TestWhatIsGoneIsForgotten(t *testing.T) {
	n := newNode()
	n.Offer(notice(1, "sleep"), n.now)
	w, _ := n.Next(n.now)
	n.Done(w, Gone, n.now)
	if w, _ := n.Next(n.now); w != nil || len(n.all) != 0 {
		t.Errorf("it is still there: %+v", w)
	}
	n.Forgot(3)
	harness.Equal(t, n.LeftOut(), 3, "are left out")
}

func TestWhatAPodIsTold(t *testing.T) {
	at := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	line := control.Line{
		Time: at, Namespace: "shop", Pod: "web-0", PodUID: "u-1", Command: "ADD", IfName: "eth0", Duration: 5100 * time.Millisecond,
		Result: control.Slow, Cause: "file_lock", Certain: true,
		Verdict: "4.9s of 5.1s: iptables waited for file lock /run/xtables.lock, held by iptables-restor (child of kube-proxy)",
	}
	with := func(change func(*control.Line)) control.Line {
		l := line
		change(&l)
		return l
	}
	for name, c := range map[string]struct {
		line               control.Line
		kind, reason, note string
	}{
		"slow": {
			line, Normal, Slow,
			"CNI ADD eth0 took 5.1s: 4.9s: iptables waited for file lock /run/xtables.lock, held by iptables-restor (child of kube-proxy)",
		},
		"slow, not certain": {
			with(func(l *control.Line) { l.Certain = false }), Normal, Slow,
			"CNI ADD eth0 took 5.1s: the cause is uncertain; kubectl cniscope why names the candidates",
		},
		"slow by another pod": {
			with(func(l *control.Line) { l.Foreign, l.Verdict = true, "4.9s of 5.1s: waiting for bank/vault" }), Normal, Slow,
			"CNI ADD eth0 took 5.1s: cause file_lock, by or because of another pod: its name and what it did are for " +
				"cniscope's operators",
		},
		"slow, nothing known": {
			with(func(l *control.Line) { l.Cause, l.Verdict = "", "" }), Normal, Slow,
			"CNI ADD eth0 took 5.1s",
		},
		"failed": {
			with(func(l *control.Line) {
				l.Result, l.Cause, l.Verdict = control.Failed, "plugin_error", "host-local: no IP addresses available in range "+
					"set: 10.1.0.2-10.1.0.5"
			}), Warning, Failed,
			"CNI ADD eth0 failed after 5.1s: host-local: no IP addresses available in range set: 10.1.0.2-10.1.0.5",
		},
		"failed without a verdict": {
			with(func(l *control.Line) {
				l.Result, l.Cause, l.Verdict, l.Error = control.Failed, "", "",
					"no answer"
			}), Warning, Failed,
			"CNI ADD eth0 failed after 5.1s: no answer",
		},
		"failed by another pod": {
			with(func(l *control.Line) {
				l.Result, l.Cause, l.Verdict, l.Error, l.Foreign = control.Failed, "", "", "bank/vault has it", true
			}), Warning, Failed, "CNI ADD eth0 failed after 5.1s",
		},
		"hung": {
			with(func(l *control.Line) { l.Result, l.Verdict = control.Hung, "agentd does not answer" }), Warning, Hung,
			"CNI ADD eth0 is not over after 5.1s: agentd does not answer",
		},
		"the sandbox's start": {
			with(func(l *control.Line) { l.Command, l.IfName, l.Verdict = "RunPodSandbox", "", "" }), Normal, Slow, "RunPodSandbox took 5.1s",
		},
		"no interface": {
			with(func(l *control.Line) { l.IfName, l.Verdict = "", "" }), Normal, Slow, "CNI ADD took 5.1s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, ok := Of(c.line)
			if !ok || n.Type != c.kind || n.Reason != c.reason || n.Note != c.note {
				t.Errorf("%v %s %s %q", ok, n.Type, n.Reason, n.Note)
			}
			if n.Namespace != "shop" || n.Pod != "web-0" || n.UID != "u-1" || n.Action != c.line.Command || !n.Time.Equal(at) {
				t.Errorf("it is told to %+v", n)
			}
		})
	}
	for name, l := range map[string]control.Line{
		"ordinary":              with(func(l *control.Line) { l.Result = control.Ordinary }),
		"of nobody":             with(func(l *control.Line) { l.Pod = "" }),
		"of a pod without a id": with(func(l *control.Line) { l.PodUID = "" }),
	} {
		if n, ok := Of(l); ok {
			t.Errorf("%s: a pod is told %q", name, n.Note)
		}
	}
	long, _ := Of(with(func(l *control.Line) { l.Verdict = strings.Repeat("ä", 2000) }))
	if len(long.Note) > maxNote || !strings.HasSuffix(long.Note, "ä…") {
		t.Errorf("a long note has %d bytes, and ends in %q", len(long.Note), long.Note[len(long.Note)-8:])
	}
}
