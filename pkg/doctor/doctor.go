// Package doctor examines a node and reports why its pods get no network, or soon will not: pkg/doctor/gather gathers
// facts, and one pure function per check judges them.
//
// It changes nothing and runs nothing; it sends one test span to the OTLP endpoint. Foreign text is
// bounded and escaped (pkg/text). Of a CNI configuration it reports only names, types, sockets and kubeconfigs.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/doctor/gather"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/leak"
)

// Options of an examination.
type Options = fact.Options

const (
	// DefaultKubelet is KubeletConfiguration's healthzPort.
	DefaultKubelet = "127.0.0.1:10248"
	// DefaultPatience keeps an examination without answers below two seconds.
	DefaultPatience = 1500 * time.Millisecond
)

func withDefaults(o fact.Options) fact.Options {
	o.Kubelet = cmp.Or(o.Kubelet, DefaultKubelet)
	o.Patience = cmp.Or(max(o.Patience, 0), DefaultPatience)
	o.Hung = cmp.Or(max(o.Hung, 0), 20*time.Second) // as slow.hung
	o.Leak = cmp.Or(max(o.Leak, 0), leak.After)
	return o
}

// Examine gathers and judges the facts.
func Examine(ctx context.Context, o fact.Options) Report {
	o = withDefaults(o)
	began := time.Now()
	report := Judge(gather.Facts(ctx, o))
	report.Node, report.Time, report.Took = o.Node, began, time.Since(began)
	return report
}

func within[T any](ctx context.Context, o Options, look func(context.Context, Options) T) T {
	o = withDefaults(o)
	ctx, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	return look(ctx, o)
}

// PluginDirs returns the runtime's process, its plugins' directories, and whether it runs loopback, if it answers.
func PluginDirs(ctx context.Context, o Options) (pid int, dirs []string, loopback bool) {
	f := within(ctx, o, gather.Readiness)
	return f.Runtime.Value.PID, f.CRI.Value.BinDirs, f.CRI.Value.NeedsLoopback
}

const lookWithin = 250 * time.Millisecond

// Needed examines the object that a failed call needed.
func Needed(ctx context.Context, o Options, w event.Want) *event.Found {
	o.Patience = lookWithin
	return within(ctx, o, func(ctx context.Context, o Options) *event.Found { return gather.Found(ctx, o, w) })
}

// Want selects the obstacles for InTheWay.
type Want = gather.Want

// InTheWay lists obstacles to pods' packets by sandbox, those of all pods under "".
func InTheWay(ctx context.Context, o Options, w Want) map[string][]event.Obstacle {
	f := within(ctx, o, func(ctx context.Context, o Options) *fact.Facts { return gather.InTheWay(ctx, o, w) })
	found := map[string][]event.Obstacle{}
	if w.Node {
		found[""] = obstacles(f)
	}
	for _, g := range f.Gone.Value {
		found[g.ContainerID] = g.Obstacles[:1] // thousands do not fit a recording's line
	}
	return found
}

// Programs finds programs that cannot be started.
type Programs = gather.Programs

func checks() []check {
	folder := func(f *fact.Facts) error { return f.Folder.Err }
	loaded := func(f *fact.Facts) error { return cmp.Or(f.CRI.Err, f.Folder.Err) }
	nothing := func(*fact.Facts) error { return nil }
	return []check{
		{"runtime", runtimeAnswers, nothing},
		{"cni-folder", folderLoads, folder},
		{"cni-binaries", binariesAreThere, func(f *fact.Facts) error { return f.Binaries.Err }},
		{"cni-version", versionsAreKnown, folder},
		{"cni-loaded", loadedIsCurrent, loaded},
		{"cni-order", rightOneWins, loaded},
		{"network-ready", networkIsReady, func(f *fact.Facts) error { return f.CRI.Err }},
		{"cni-agent", agentsAnswer, func(f *fact.Facts) error { return f.CRI.Err }},
		{"network-pods", networkPodsRun, func(f *fact.Facts) error { return f.Containers.Err }},
		{"kubelet", kubeletIsHealthy, func(f *fact.Facts) error { return f.Kubelet.Err }},
		{"dns", namesResolve, func(f *fact.Facts) error { return f.DNS.Err }},
		{"service-proxies", oneServiceProxy, nothing},
		{"service-rules", rulesHaveAnOwner, func(f *fact.Facts) error { return f.Chains.Err }},
		{"leftovers", nothingIsLeftOver, func(f *fact.Facts) error {
			return cmp.Or(loaded(f), f.Network.Err, f.Processes.Err, f.Containers.Err)
		}},
		{"overlap", podsHaveTheirOwnAddresses, func(f *fact.Facts) error { return cmp.Or(f.CRI.Err, f.Network.Err) }},
		{"forwarding", podsAreForwarded, func(f *fact.Facts) error { return cmp.Or(f.CRI.Err, f.Forwarding.Err) }},
		{"living-pods", podsKeepTheirNetwork, func(f *fact.Facts) error {
			return cmp.Or(f.Held.Err, f.Chains.Err, f.Gone.Err)
		}},
		{"leaked-networks", networksAreGivenBack, func(f *fact.Facts) error { return f.Held.Err }},
		{"leaked-leases", leasesAreGivenBack, func(f *fact.Facts) error { return f.Held.Err }},
		{"calls", noCallIsStuck, nothing},
		{"failed-calls", callsSucceed, nothing},
		{"locks", nobodyWaitsForALock, func(f *fact.Facts) error { return f.Locks.Err }},
		{"nri", nriIsThere, nothing},
		{"kernel", kernelIsEnough, func(f *fact.Facts) error { return f.Kernel.Err }},
		{"otlp", endpointTakesSpans, nothing},
		{"clock", clockIsSet, func(f *fact.Facts) error { return f.Clock.Err }},
	}
}

// lacks returns the error of a fact that look needs.
type check struct {
	name  string
	look  func(*fact.Facts) ([]Finding, error)
	lacks func(*fact.Facts) error
}

func (c check) judge(f *fact.Facts) ([]Finding, error) {
	if err := c.lacks(f); err != nil {
		return nil, err
	}
	return c.look(f)
}

// see points to those of the checks that find a fault.
func see(f *fact.Facts, otherwise string, names ...string) string {
	var found []string
	for _, c := range checksOf(f) {
		if slices.Contains(names, c.name) {
			findings, err := c.judge(f)
			if err == nil && slices.ContainsFunc(findings, func(x Finding) bool { return x.Level != Note }) {
				found = append(found, c.name)
			}
		}
	}
	if len(found) == 0 {
		return otherwise
	}
	return "see " + strings.Join(found, " and ")
}

type notApplicable string

func (n notApplicable) Error() string { return string(n) }

// Judge makes all checks.
func Judge(f *fact.Facts) Report {
	r := Report{Findings: []Finding{}}
	for _, c := range checksOf(f) {
		findings, err := c.judge(f)
		state, reason := OK, ""
		switch na, is := errors.AsType[notApplicable](err); {
		case is:
			state, reason = NotApplicable, fact.Clean(na.Error())
		case errors.Is(err, fact.ErrElsewhere):
			state, reason = NotApplicable, fact.ErrElsewhere.Error()
		case err != nil:
			state, reason = Unchecked, fact.Clean(err.Error())
			if fact.Unasked(err) && !errors.Is(err, context.Canceled) {
				reason += "; run doctor as root with all capabilities"
			}
		}
		for _, finding := range findings {
			finding.Check = c.name
			if finding.Level != Note {
				state = Found
			}
			r.Findings = append(r.Findings, finding)
		}
		r.Checks = append(r.Checks, Outcome{Name: c.name, State: state, Reason: reason})
	}
	return r
}
