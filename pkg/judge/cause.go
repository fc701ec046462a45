package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/text"
	"github.com/cniscope/cniscope/pkg/timeline"
)

// Cause is, in a word of few, what a call lost its time to, or what made it fail.
type Cause string

// The causes. docs/verdicts.md says of each what it looks like, what it means and what to
// do.
const (
	CauseLock        Cause = "file_lock"
	CauseKernelLock  Cause = "kernel_lock"
	CauseDAD         Cause = "ipv6_dad"
	CauseRetry       Cause = "iptables_retry"
	CauseCommands    Cause = "many_commands"
	CausePowerShell  Cause = "powershell"
	CauseCommand     Cause = "slow_command"
	CauseScan        Cause = "host_local_scan"
	CauseAgent       Cause = "agent"
	CauseRefused     Cause = "agent_refused"
	CauseBusy        Cause = "agent_busy"
	CauseAPIServer   Cause = "api_server"
	CauseLeakedChild Cause = "leaked_child"
	CauseStarved     Cause = "cpu_starved"
	CauseSleep       Cause = "sleep"
	CauseNetwork     Cause = "network_configuration"
	CauseSystemCall  Cause = "system_call"
	CauseRuntime     Cause = "runtime"
	CausePlugin      Cause = "plugin"
	CauseFailed      Cause = "plugin_error"
	CauseMissing     Cause = "missing_plugin"
	CauseUnexplained Cause = "unexplained"
)

// Verdict is what an expert would say of a call after reading its trace.
type Verdict struct {
	Cause Cause
	// Says is one sentence: "4.9s of 5.1s waiting for lock /run/xtables.lock, held by
	// kube-proxy (pid 812)".
	Says string
	// Remedy is what to do about it; empty where nothing general can be said.
	Remedy string
	// Report is the public report of such a case, as "aws/amazon-vpc-cni-k8s#2948".
	Report string
}

// finding is what one rule recognised.
type finding struct {
	Verdict
	// time of the call that this explains.
	time time.Duration
	// kind of part that this time is counted as. Of different kinds nothing is counted twice.
	kind PartKind
	// overall: it explains why the other findings took so long.
	overall bool
}

// rule recognises one pattern; nil if the call does not have it. Each is in a file of its
// own, rule_*.go.
type rule func(*matter) *finding

// rules in the order in which they are preferred: the special before the general.
func rules() []rule {
	return []rule{
		starved, leakedChild, apiServer, refusedAgent, dad, heldLock, contended, iptablesRetry,
		powerShell, hostLocalScan, manyCommands, slowCommand, slowAgent, networkConfiguration, systemCall, sleeping,
		runtimeGap, slowPlugin, unexplained,
	}
}

const (
	// enough is the share of the best finding's time that a more special one needs to be
	// preferred.
	enough = 0.8
	// worth is the share of a call that a second cause needs to be worth a word, where the
	// first is less than half of the call.
	worth = 0.2
)

// verdict says why a call took so long or failed. An ordinary fast one has none.
func verdict(call *timeline.Call, c *Call, l ledger) *Verdict {
	if c.Slow == 0 && c.Failure == "" && !call.Hung {
		return nil
	}
	m := &matter{call: call, Call: c, ledger: l}
	killed := c.Failed != nil && c.Failed.Signal == "SIGKILL" && (c.Slow > 0 || call.Hung)
	if c.Failure != "" && !killed {
		return failed(m)
	}
	v := m.slow()
	if v != nil && killed { // the runtime has no more patience
		v.Says += fmt.Sprintf("; then %s was killed", c.Failed.Run.Plugin)
	}
	return v
}

// slow says what a call's time was lost to; nil if nothing at all is known.
func (m *matter) slow() *Verdict {
	var found []*finding
	for _, rule := range rules() {
		if f := rule(m); f != nil && f.time > 0 {
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		return nil
	}
	longest := slices.MaxFunc(found, func(a, b *finding) int { return cmp.Compare(a.time, b.time) })
	best := longest
	for _, f := range found { // the first, which is the most special, that is nearly as good
		if f.overall || float64(f.time) >= enough*float64(longest.time) {
			best = f
			break
		}
	}
	v := best.Verdict
	v.Says = fmt.Sprintf("%s of %s %s", text.Round(best.time), text.Round(m.Took), v.Says)
	if next := m.next(best, found); next != nil {
		v.Says += fmt.Sprintf("; %s %s", text.Round(next.time), next.Says)
	}
	if m.call.Reconfigured != 0 {
		v.Says += fmt.Sprintf("; the CNI folder was written meanwhile, so for up to %s no other call of the node could begin",
			text.Round(time.Duration(m.call.End-m.call.Reconfigured)))
	}
	return &v
}

// next is a second cause that is worth a word.
func (m *matter) next(best *finding, found []*finding) (next *finding) {
	if best.time > m.Took/2 || best.overall {
		return nil
	}
	for _, f := range found {
		if f.kind != best.kind && !f.overall && float64(f.time) >= worth*float64(m.Took) && (next == nil || f.time > next.time) {
			next = f
		}
	}
	return next
}
