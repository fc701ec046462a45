package doctor

import (
	"context"
	"time"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/doctor/gather"
	"github.com/cniscope/cniscope/pkg/event"
)

// waitPace is the interval of questions. A question is as costly as kubelet's, which asks every five seconds.
const waitPace = time.Second

// Step is what a network lacks to be ready.
type Step struct {
	Missing string
	Lacks   event.Lack
	Denied  error // if asking is not permitted
}

// WaitReady waits until the network is ready and its agents answer, ctx ends, or asking is not permitted. It calls
// changed with each new missing step.
func WaitReady(ctx context.Context, o fact.Options, changed func(missing string)) Step {
	o = withDefaults(o)
	said := ""
	for {
		step := nextStep(ctx, o, true)
		if ctx.Err() != nil && said != "" {
			return Step{Missing: said} // spoiled by ctx's end
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

func nextStep(ctx context.Context, o fact.Options, agents bool) Step {
	ctx, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	f := gather.Readiness(ctx, o)
	err := f.CRI.Err
	switch {
	case err == nil && f.CRI.Value.Network && agents:
		gather.Agents(ctx, f)
		found, _ := agentsAnswer(f) // Windows has no answer
		for _, finding := range found {
			return Step{Missing: finding.Summary, Lacks: event.LackStatus}
		}
		return Step{}
	case err == nil && f.CRI.Value.Network:
		return Step{}
	case err != nil && fact.Unasked(err):
		return Step{
			Missing: fact.Sayf("no permission to query %s: %s", f.Runtime.Value.Called(), err),
			Lacks:   event.LackRuntime, Denied: err,
		}
	case f.Runtime.Err != nil:
		return Step{
			Missing: fact.Sayf("%s does not answer: %s", f.Runtime.Value.Called(), f.Runtime.Err),
			Lacks:   event.LackRuntime,
		}
	}
	lacks, missing, _ := missingStep(f)
	return Step{Missing: missing, Lacks: lacks}
}

// Missing is what the network lacks now.
func Missing(ctx context.Context, o fact.Options) Step { return nextStep(ctx, withDefaults(o), false) }
