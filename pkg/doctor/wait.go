package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/doctor/gather"
	"github.com/cniscope/cniscope/pkg/event"
)

const waitPace = time.Second

// Gate is a stage of an installation. It opens when a check applies and none finds anything.
type Gate struct {
	Name, What string
	checks     []string
	also       string // if possible
}

// Gates are in the order of an installation.
func Gates() []Gate {
	return []Gate{
		{"runtime", "the container runtime", []string{"runtime"}, ""},
		{"cni", "the CNI configuration", []string{"runtime", "cni-folder", "cni-binaries", "cni-version", "cni-loaded"}, ""},
		{"agent", "the CNI's agent", []string{"runtime", "cni-folder", "cni-agent"}, ""},
		{"ready", "the node's network", []string{"runtime", "network-ready", "cni-agent"}, "cni-binaries"},
		{"dns", "the cluster's DNS", []string{"dns"}, ""},
	}
}

// Wait waits up to o.Wait, or until asking is denied. changed gets each new missing step.
func (g Gate) Wait(ctx context.Context, o fact.Options, changed func(missing string)) (missing string, denied bool) {
	o = withDefaults(o)
	over := time.After(o.Wait)
	for {
		now, denied := g.missing(ctx, o)
		if ctx.Err() != nil {
			return missing, false
		}
		if now == "" || denied {
			return now, denied
		}
		if now != missing {
			missing = now
			changed(now)
		}
		select {
		case <-time.After(waitPace):
		case <-over:
			return missing, false
		case <-ctx.Done():
			return missing, false
		}
	}
}

func (g Gate) missing(ctx context.Context, o fact.Options) (step string, denied bool) {
	f := within(ctx, o, func(ctx context.Context, o fact.Options) *fact.Facts {
		return gather.Step(ctx, o, slices.Contains(g.checks, "dns"))
	})
	applies := false
	for _, c := range checksOf(f) {
		if c.name != g.also && !slices.Contains(g.checks, c.name) {
			continue
		}
		findings, err := c.judge(f)
		for _, finding := range findings {
			if finding.Level != Note {
				return strings.TrimPrefix(finding.Summary, g.What+" is not ready: "), false
			}
		}
		switch na, is := errors.AsType[notApplicable](err); {
		case is:
			step = fact.Clean(na.Error())
		case err != nil && c.name == g.also:
		case err != nil:
			return fact.Sayf("could not check %s: %s", c.name, err), fact.Unasked(err)
		default:
			applies = true
		}
	}
	if applies {
		return "", false
	}
	return step, false
}

// Missing returns the parts that the network lacks to be ready, except its agents.
func Missing(ctx context.Context, o fact.Options) (lacks event.Lack, step string) {
	f := within(ctx, o, gather.Readiness)
	switch {
	case f.CRI.Err == nil && f.CRI.Value.Network:
		return "", ""
	case f.Runtime.Err != nil:
		return event.LackRuntime, fact.Sayf("%s does not answer: %s", f.Runtime.Value.Called(), f.Runtime.Err)
	}
	lacks, step, _ = missingStep(f)
	return lacks, step
}
