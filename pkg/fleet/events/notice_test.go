package events

import (
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/control"
)

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
