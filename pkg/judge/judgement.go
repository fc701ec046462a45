package judge

import (
	"time"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// Reason is why an operation is kept or not.
type Reason string

// The reasons. Slow, Failed, Partial and Hung may stand in Sampling.Keep.
const (
	Slow    Reason = "slow"
	Failed  Reason = "failed"
	Partial Reason = "partial"
	Hung    Reason = "hung"
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
	Calls   map[*timeline.Call]*Call
	// Slow maps the commands that took longer than allowed to their threshold, SlowAgents and
	// SlowLocks connections and waits for locks.
	Slow       map[*timeline.Image]time.Duration
	SlowAgents map[*timeline.Connection]time.Duration
	SlowLocks  map[*timeline.Wait]time.Duration
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
	// Failed is the innermost run that failed; nil if none did (one that should have followed
	// never ran).
	Failed *timeline.Image
	// Verdict says why it was slow, hung or failed; nil for an ordinary call.
	Verdict *Verdict
	// Parts is where its wall time went, largest first. Their times sum to Took exactly.
	Parts []Part
}
