// Package doctor looks at a node and says why its pods' network does not work, or will
// not: facts are gathered at the edge, each by its own file, and judged in the middle, by
// one pure function for each check.
//
// It reads and asks, and changes nothing: it runs no command and no CNI plugin, and needs
// no access to the cluster. What it asks are containerd (what it has loaded, not what its
// configuration file says), the kernel, /proc, kubelet's healthz, a running cniscope, and,
// by one test span, the OTLP endpoint.
//
// What comes from elsewhere (names of files, last lines of logs, errors) is bounded and
// escaped by pkg/text. Of network configurations no text goes on, only names and types.
package doctor

import (
	"context"
	"errors"
	"time"
)

// Options say what is looked at.
type Options struct {
	// Node is the node's name, for the report.
	Node string
	// Address is containerd's socket, NRISocket its socket for NRI plugins; the latter is
	// empty where cniscope is not to use NRI.
	Address, NRISocket string
	// ConfDir is the CNI folder that is looked at where containerd cannot be asked.
	ConfDir string
	// RunDir is where a running cniscope listens.
	RunDir string
	// Kubelet is host and port of kubelet's healthz. Default: DefaultKubelet.
	Kubelet string
	// Hung is from when on a call that is under way is spoken of.
	Hung time.Duration
	// Endpoint names where spans go; empty where nowhere. Send sends one test span there.
	Endpoint string
	Send     func(context.Context) error
	// Patience is how long whatever is asked may take to answer. Default: DefaultPatience.
	Patience time.Duration
}

const (
	// DefaultKubelet is where kubelet says how it is (KubeletConfiguration: healthzPort).
	DefaultKubelet = "127.0.0.1:10248"
	// DefaultPatience keeps a doctor of whom nobody answers below two seconds.
	DefaultPatience = 1500 * time.Millisecond
)

func (o Options) withDefaults() Options {
	if o.Kubelet == "" {
		o.Kubelet = DefaultKubelet
	}
	if o.Patience <= 0 {
		o.Patience = DefaultPatience
	}
	if o.Hung <= 0 {
		o.Hung = 30 * time.Second
	}
	return o
}

// Examine gathers the facts and judges them.
func Examine(ctx context.Context, o Options) Report {
	o = o.withDefaults()
	began := time.Now()
	report := Judge(gather(ctx, o))
	report.Node, report.Time, report.Took = o.Node, began, time.Since(began)
	return report
}

// checks are all there are, in the order of the report: what the others stand on first.
func checks() []check {
	return []check{
		{"containerd", containerdAnswers},
		{"cni-folder", folderLoads},
		{"cni-binaries", binariesAreThere},
		{"cni-version", versionsAreKnown},
		{"cni-loaded", loadedIsCurrent},
		{"cni-order", rightOneWins},
		{"network-ready", networkIsReady},
		{"network-pods", networkPodsRun},
		{"kubelet", kubeletIsHealthy},
		{"service-proxies", oneServiceProxy},
		{"service-rules", rulesHaveAnOwner},
		{"leftovers", nothingIsLeftOver},
		{"overlap", podsHaveTheirOwnAddresses},
		{"calls", noCallIsStuck},
		{"locks", nobodyWaitsForALock},
		{"nri", nriIsThere},
		{"kernel", kernelIsEnough},
		{"otlp", endpointTakesSpans},
		{"clock", clockIsSet},
	}
}

// check is one question. look answers it from facts alone: with what it found, with
// nothing where all is well, with a notApplicable where the question does not arise here,
// and with another error where it cannot be answered.
type check struct {
	name string
	look func(*Facts) ([]Finding, error)
}

// notApplicable says why a question does not arise on this node.
type notApplicable string

func (n notApplicable) Error() string { return string(n) }

// Judge is the pure part: the same facts, the same report.
func Judge(f *Facts) Report {
	r := Report{Findings: []Finding{}}
	for _, c := range checks() {
		findings, err := c.look(f)
		state, reason := OK, ""
		var na notApplicable
		switch {
		case errors.As(err, &na):
			state, reason = NotApplicable, clean(na.Error())
		case err != nil:
			state, reason = Unchecked, clean(err.Error())
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
