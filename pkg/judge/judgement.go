package judge

import (
	"time"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/model"
)

// Reason is why an operation is kept or not.
type Reason string

// The reasons. Slow, Failed, Partial, Hung and Unusual may stand in Sampling.Keep.
const (
	Slow    Reason = "slow"
	Failed  Reason = "failed"
	Partial Reason = "partial"
	Hung    Reason = "hung"
	// Unusual: something in it was slower than usual.
	Unusual Reason = "unusual"
	// Sampled: it belongs to the share of ordinary operations that is kept.
	Sampled Reason = "sampled"
	// Unsampled: its parent is not sampled, or it does not belong to the share.
	Unsampled Reason = "unsampled"
	// NoSandbox: it is of no pod, as STATUS, which runtimes call every few seconds.
	NoSandbox Reason = "no sandbox"
)

// Judgement is what the judge decided about one operation.
type Judgement struct {
	Keep bool
	// Reduced: only the operation's calls are kept (see Limiter).
	Reduced bool
	// Reasons why it is kept or not, in the order of the constants.
	Reasons []Reason
	Calls   map[*model.Call]*Call
	// Slow maps the commands that took longer than allowed to their threshold, SlowAgents and
	// SlowLocks connections and waits for locks.
	Slow       map[*model.Image]time.Duration
	SlowAgents map[*model.Connection]time.Duration
	SlowLocks  map[*model.Wait]time.Duration
	// Usual maps the plugins and commands that took longer than is usual to how long they take else; nil where
	// nothing did.
	Usual map[*model.Image]baseline.Answer
	// Findings are what the operation was the last to show of what is usual.
	Findings []baseline.Finding
}

// Problem is the worst that happened in the operation: Failed, else Slow, which a part of a call may be, too,
// or a call that was reported as Hung. Empty if it was ordinary. Sampling has no say in it.
func (j *Judgement) Problem() (worst Reason) {
	if len(j.Slow)+len(j.SlowAgents)+len(j.SlowLocks) > 0 {
		worst = Slow
	}
	for call, c := range j.Calls {
		switch {
		case c.Failure != "":
			return Failed
		case c.Slow > 0 || call.Hung:
			worst = Slow
		}
	}
	return worst
}

// Call is what the judge decided about one call.
type Call struct {
	// Took is its wall time.
	Took time.Duration
	// Slow is the threshold it crossed; 0 if it crossed none.
	Slow time.Duration
	// SlowCommands, SlowAgents and SlowLocks count the commands, connections and waits for
	// locks that took longer than their threshold.
	SlowCommands, SlowAgents, SlowLocks int
	// Failure describes what failed; empty if nothing did.
	Failure string
	// Failed is the innermost run that failed; nil if none did (one that should have followed never ran).
	Failed *model.Image
	// Unusual: something in it was slower than usual, and nothing else was wrong with the call itself.
	Unusual bool
	// Verdict says why it was slow, slower than usual, hung or failed; nil for an ordinary call.
	Verdict *Verdict
	// Parts is where its wall time went, largest first. Their times sum to Took exactly.
	Parts []Part
}

// Cause is what a call lost its time to, or what made it fail: one of a few fixed words.
type Cause string

// The causes. docs/verdicts.md describes each: what it looks like, what it means, what to do.
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

// Verdict is what an expert would say about a call after reading its trace.
type Verdict struct {
	Cause Cause
	// Says is one sentence: "4.9s of 5.1s waiting for lock /run/xtables.lock, held by kube-proxy (pid 812)".
	Says string
	// Own is Says for whoever may see the pods of the call's namespace only; empty if that is the same.
	Own string
	// Certain says that this was seen, and is not merely what may have been the reason.
	Certain bool
	// Remedy is what to do about it; empty where there is no general advice.
	Remedy string
	// Report is a public report of such a case: "aws/amazon-vpc-cni-k8s#2948".
	Report string
}

// finding is what one rule recognised in a call. The verdict is made of one or two findings.
type finding struct {
	Verdict
	// time is how much of the call this explains.
	time time.Duration
	// kind is the kind of part that this time belongs to: findings of different kinds share no time.
	kind PartKind
	// candidate: most of that time went into what an agent did, perhaps, for another call or for itself.
	// What is not certain has no remedy.
	candidate bool
	// agent was waited for, by a connection; nil if none was.
	agent *model.Connection
	// heldUp: who was waited for, or whoever that one waited for, was stopped or frozen. known: the state that
	// this one was in says why it took so long.
	heldUp, known bool
	// shared: it was seen, but may have been done for other calls only.
	shared bool
	// overall: it explains why everything else took so long.
	overall bool
}

// rule recognises one pattern in a call; nil if it is not there. Each has a file of its own, rule_*.go.
type rule func(*evidence) *finding
