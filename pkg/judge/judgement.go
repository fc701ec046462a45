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
	Unusual Reason = "unusual"
	// Sampled: selected at random.
	Sampled Reason = "sampled"
	// Unsampled: not selected, or the parent is unsampled.
	Unsampled Reason = "unsampled"
	// NoSandbox: no pod, such as for STATUS.
	NoSandbox Reason = "no sandbox"
)

// Judgement is the result for one operation.
type Judgement struct {
	Keep bool
	// Reduced: only the calls are kept (see Limiter).
	Reduced bool
	Reasons []Reason // in the order of the constants
	// TraceState has the sampling threshold; empty if no ratio counts.
	TraceState string
	Calls      map[*model.Call]*Call
	// Slow, SlowAgents and SlowLocks give the exceeded thresholds.
	Slow       map[*model.Image]time.Duration
	SlowAgents map[*model.Connection]time.Duration
	SlowLocks  map[*model.Wait]time.Duration
	// Usual has the baselines of slower plugins and commands; may be nil.
	Usual map[*model.Image]baseline.Answer
	// Findings are baseline changes that this operation completed.
	Findings []baseline.Finding
}

// Problem is Failed, else Slow (also for a slow part or a call reported as Hung), else empty, regardless of Sampling.
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

// Call is the result for one call.
type Call struct {
	Took time.Duration
	// Slow is the exceeded threshold; 0 if none.
	Slow                                time.Duration
	SlowCommands, SlowAgents, SlowLocks int
	Failure                             string
	// Failed is the innermost failed run; nil if none failed, such as when a plugin never ran.
	Failed *model.Image
	// Unusual: slower than usual, with nothing else wrong.
	Unusual bool
	Verdict *Verdict // nil for an ordinary call
	// Parts, largest first, sum to Took exactly.
	Parts []Part
}

// Plugin returns the failed, otherwise the main one.
func (c *Call) Plugin(of *model.Call) string {
	switch {
	case c.Failure == "":
	case c.Failed != nil:
		return c.Failed.Run.Plugin
	case len(of.NeverRun) > 0:
		return of.NeverRun[0]
	}
	return of.Main()
}

// Cause is what a call spent its time on, or what made it fail.
type Cause string

// The causes; docs/verdicts.md describes each.
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
	CauseIdle        Cause = "agent_idle"
	CausePeer        Cause = "behind_agent"
	CauseEnded       Cause = "agent_ended"
	CauseRestarted   Cause = "agent_restarted"
	CauseOOM         Cause = "agent_oom"
	CauseStopped     Cause = "agent_stopped"
	CauseBusy        Cause = "agent_busy"
	CauseAPIServer   Cause = "api_server"
	CauseLockFile    Cause = "lock_file"
	CauseMissingFile Cause = "missing_file"
	CauseMount       Cause = "mount"
	CauseHalted      Cause = "plugin_stopped"
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

	// In the sandbox's start.
	CauseShim       Cause = "shim"
	CauseOCIRuntime Cause = "oci_runtime"
	CauseHook       Cause = "oci_hook"
	CauseNRI        Cause = "nri_plugin"
)

// Verdict explains a call.
type Verdict struct {
	Cause Cause
	// Says is one sentence: "4.9s of 5.1s: iptables waited for file lock /run/xtables.lock, held by kube-proxy (pid 812)".
	Says string
	// Own is Says for users who may see only the call's namespace; empty if the same.
	Own string
	// Certain: seen, not just possible.
	Certain bool
	Remedy  string
	// Report is a public report, such as "aws/amazon-vpc-cni-k8s#2948".
	Report string
}

// finding is what one rule recognized; a verdict has one or two.
type finding struct {
	Verdict
	time time.Duration
	// Findings of different kinds share no time.
	kind PartKind
	// candidate: an agent may have spent the time on another call, so there is no remedy.
	candidate     bool
	agent         *model.Connection
	heldUp, known bool
	// shared: possibly for other calls only.
	shared bool
	// overall: it delayed everything else.
	overall bool
}

type rule func(*evidence) *finding
