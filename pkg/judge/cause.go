package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

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

// finding is a verdict with its weight.
type finding struct {
	Verdict
	// time of the call that this explains.
	time time.Duration
}

// matter is a call as the rules see it.
type matter struct {
	call *timeline.Call
	*Call
	// images are all of the call, without what servers did for nobody knows whom.
	images []*timeline.Image
}

// rule recognises one pattern; nil if the call does not have it. Each is in a file of its
// own, rule_*.go.
type rule func(*matter) *finding

// rules in the order in which they are preferred: the special before the general.
func rules() []rule {
	return []rule{
		starved, busyAgent, refusedAgent, apiServer, leakedChild, dad, iptablesRetry, heldLock, contended,
		powerShell, hostLocalScan, manyCommands, slowCommand, slowAgent, networkConfiguration, sleeping,
		runtimeGap, slowPlugin, unexplained,
	}
}

// enough is the share of the best finding's time that a more special one needs to be
// preferred.
const enough = 0.8

// verdict says why a call took so long or failed. An ordinary fast one has none.
func verdict(call *timeline.Call, c *Call) *Verdict {
	if c.Slow == 0 && c.Failure == "" && !call.Hung {
		return nil
	}
	m := &matter{call: call, Call: c}
	for _, run := range call.Runs {
		run.Walk(func(im *timeline.Image) { m.images = append(m.images, im) })
	}
	if v := failed(m); v != nil {
		return v
	}
	var found []*finding
	for _, rule := range rules() {
		if f := rule(m); f != nil && f.time > 0 {
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		return nil
	}
	best := slices.MaxFunc(found, func(a, b *finding) int { return cmp.Compare(a.time, b.time) })
	for _, f := range found { // the first, which is the most special, that is nearly as good
		if float64(f.time) >= enough*float64(best.time) {
			best = f
			break
		}
	}
	v := best.Verdict
	v.Says = fmt.Sprintf("%s of %s %s", Round(best.time), Round(c.Took), v.Says)
	if call.Reconfigured != 0 {
		v.Says += fmt.Sprintf("; the CNI folder was written meanwhile, so for up to %s no other call of the node could begin",
			Round(time.Duration(call.End-call.Reconfigured)))
	}
	return &v
}

// of adds up the parts of some kinds, and returns the largest of them.
func (m *matter) of(kinds ...PartKind) (sum time.Duration, largest *Part) {
	for i := range m.Parts { // largest first
		if p := &m.Parts[i]; slices.Contains(kinds, p.Kind) {
			sum += p.Time
			if largest == nil {
				largest = p
			}
		}
	}
	return sum, largest
}

// took is how long an image was there.
func took(im *timeline.Image) time.Duration { return time.Duration(im.End - im.Start) }
