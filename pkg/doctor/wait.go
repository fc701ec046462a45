package doctor

import (
	"context"
	"time"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/doctor/gather"
	"github.com/cniscope/cniscope/pkg/event"
)

// waitPace is how often is asked: the question costs the runtime what kubelet's costs it,
// which asks every five seconds.
const waitPace = time.Second

// Step is what is missing until a node's network is ready.
type Step struct {
	Missing string // empty where nothing is
	Lacks   event.Lack
	Denied  error // why we may not ask
}

// WaitReady returns once the runtime says that the node's network is ready and the agents of its plugins
// answer, or when ctx ends, or when it turns out that we may not ask. It calls changed with each step that is
// missing, when that is another one than before.
func WaitReady(ctx context.Context, o fact.Options, changed func(missing string)) Step {
	o = withDefaults(o)
	said := ""
	for {
		step := nextStep(ctx, o, true)
		if ctx.Err() != nil && said != "" {
			return Step{Missing: said} // the answer may be of our own haste
		}
		if step.Missing == "" || step.Denied != nil {
			return step
		}
		if step.Missing != said {
			said = step.Missing
			changed(said)
		}
		select {
		case <-time.After(waitPace):
		case <-ctx.Done():
			return step
		}
	}
}

// nextStep looks what is missing; agents: also of the agents, which the runtime does not ask.
func nextStep(ctx context.Context, o fact.Options, agents bool) Step {
	ctx, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	f := gather.Readiness(ctx, o)
	err := f.CRI.Err
	switch {
	case err == nil && f.CRI.Value.Network && agents:
		gather.Agents(ctx, f)
		found, _ := agentsAnswer(f) // on Windows nothing is asked
		for _, finding := range found {
			return Step{Missing: finding.Summary, Lacks: event.LackStatus}
		}
		return Step{}
	case err == nil && f.CRI.Value.Network:
		return Step{}
	case err != nil && fact.Unasked(err):
		return Step{Missing: fact.Sayf("%s may not be asked: %s", f.Runtime.Value.Called(), err), Lacks: event.LackRuntime, Denied: err}
	case f.Runtime.Err != nil:
		return Step{Missing: fact.Sayf("%s does not answer: %s", f.Runtime.Value.Called(), f.Runtime.Err), Lacks: event.LackRuntime}
	}
	lacks, missing, _ := missingStep(f)
	return Step{Missing: missing, Lacks: lacks}
}

// Missing looks once what is missing until the network is ready.
func Missing(ctx context.Context, o fact.Options) Step { return nextStep(ctx, withDefaults(o), false) }
