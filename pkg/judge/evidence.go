package judge

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/model"
)

// evidence is a call with the time attributed to each image and wait (divide).
type evidence struct {
	call *model.Call
	*Call
	namespace string // of the pod
	wall      int64  // the wall clock minus the monotonic one, ns
	spans     []span
	waits     []wait
	// upper bound of innermost images' waits for a CPU
	starved time.Duration
	// span that waited longest for a CPU
	hungriest int

	ran []*program
}

func (e *evidence) of(kinds ...PartKind) (sum time.Duration, largest *Part) {
	for i := range e.Parts { // largest first
		if p := &e.Parts[i]; slices.Contains(kinds, p.Kind) {
			sum += p.Time
			if largest == nil {
				largest = p
			}
		}
	}
	return sum, largest
}

// largest is the rule that names the largest part of some kinds.
func largest(cause Cause, kinds ...PartKind) rule {
	return func(e *evidence) *finding {
		f, _ := e.largest(cause, kinds...)
		return f
	}
}

func (e *evidence) largest(cause Cause, kinds ...PartKind) (*finding, *Part) {
	time, most := e.of(kinds...)
	if most == nil {
		return nil, nil
	}
	return &finding{
		Verdict: Verdict{Cause: cause, Says: most.String(), Remedy: cause.remedy()},
		time:    time, kind: most.Kind, candidate: most.Doubtful(),
	}, most
}

func (e *evidence) image(w *wait) *model.Image { return e.spans[w.span].image }

func (e *evidence) waited(those func(*wait) bool) (sum time.Duration, longest *wait, n int) {
	for i := range e.waits {
		w := &e.waits[i]
		if w.own <= 0 || !those(w) {
			continue
		}
		sum += time.Duration(w.own)
		n++
		if longest == nil || w.own > longest.own {
			longest = w
		}
	}
	return sum, longest, n
}

// asked returns the time of selected connections and their agents' own work, the longest (may be nil), its plugin,
// and their number.
func (e *evidence) asked(those func(*model.Connection) bool) (sum time.Duration, longest *model.Connection, plugin string, n int) {
	per := map[*model.Connection]time.Duration{}
	count := func(c *model.Connection, in string, own int64) {
		if own <= 0 {
			return
		}
		if per[c] == 0 {
			n++
		}
		sum += time.Duration(own)
		per[c] += time.Duration(own)
		if longest == nil || per[c] > per[longest] {
			longest, plugin = c, in
		}
	}
	for i := range e.waits {
		w := &e.waits[i]
		if c := w.connection(); c != nil && those(c) {
			count(c, w.part.In, w.own)
		}
	}
	for i := range e.spans {
		if s := &e.spans[i]; s.agent != nil && those(s.agent) {
			count(s.agent, s.plugin, s.own)
		}
	}
	return sum, longest, plugin, n
}

func (e *evidence) beside() string {
	if e.call.Concurrent < 2 {
		return ""
	}
	return fmt.Sprintf("; up to %d other calls were in progress", e.call.Concurrent)
}

func times(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d times)", n)
}

func native(command string) string {
	switch command = strings.ToLower(command); {
	case isIPTables(command):
		return "nftables over netlink (bridge: set ipMasqBackend to nftables, portmap: set backend to nftables)"
	case command == "ip", command == "tc", command == "bridge", command == "conntrack", command == "ipset":
		return "netlink"
	case strings.HasPrefix(command, "ovs-"):
		return "OVSDB and OpenFlow from a client library"
	case command == "sysctl":
		return "a write below /proc/sys"
	case isPowerShell(command):
		return "the HCN API (hcsshim)"
	}
	return ""
}

func instead(command string) string {
	switch n := native(command); {
	case n != "":
		return fmt.Sprintf("replace %s with %s", command, n)
	case command == "":
		return "run the command under strace -f -r with the arguments that the trace shows: the longest gap is the step to speed up or remove"
	}
	return ""
}

func isPowerShell(command string) bool {
	command = strings.TrimSuffix(strings.ToLower(path.Base(command)), ".exe")
	return command == "powershell" || command == "pwsh"
}
