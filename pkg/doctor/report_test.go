package doctor

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

// A node without runtime and CNI has one line for all checks that need the runtime, and no network is called healthy.
func TestANodeWithoutARuntimeSaysSoOnce(t *testing.T) {
	f := whole()
	f.Folder.Value = fact.Folder{Dir: "/etc/cni/net.d", Missing: true}
	for _, err := range []*error{&f.CRI.Err, &f.Containers.Err, &f.Held.Err, &f.Binaries.Err} {
		*err = fact.ErrSilent
	}
	var out strings.Builder
	harness.Check(t, Judge(f).Text(&out))
	harness.Equal(t, strings.Count(out.String(), "could not check: no container runtime answers (see runtime)"), 1, "times")
	harness.Says(t, out.String(), "? cni-binaries, cni-loaded, cni-order, network-ready, cni-agent, network-pods, ", "- cni-version: no network is configured")
	if t.Failed() {
		t.Log(out.String())
	}
}

func TestMarksAreExplained(t *testing.T) {
	hung, bad := whole(), whole()
	hung.CRI.Err, bad.Folder.Value = fact.ErrSilent, fact.Folder{Dir: "/etc/cni/net.d", Missing: true}
	for want, f := range map[string]*fact.Facts{
		"\n(✓ nothing found)\n":                               whole(),
		"\n(✗ problem, ? could not check, ✓ nothing found)\n": hung,
		"\n(✗ problem, - does not apply, ✓ nothing found)\n":  bad,
	} {
		var out strings.Builder
		harness.Check(t, Judge(f).Text(&out))
		harness.Says(t, out.String(), want)
	}
}

// Before: nri was listed as healthy under its own note.
func TestACheckWithAnEntryIsNotCalledHealthy(t *testing.T) {
	f := whole()
	f.Scope.Err = control.ErrNotRunning
	var out strings.Builder
	r := Judge(f)
	harness.Check(t, r.Text(&out))
	if _, well, _ := strings.Cut(out.String(), "✓ "); strings.Contains(well, "nri") || r.ExitCode() != ExitHealthy {
		t.Error(out.String())
	}
}

// Before: without a network or a runtime these checks passed.
func TestACheckThatDecidesNothingIsNotCalledHealthy(t *testing.T) {
	state := func(f *fact.Facts, name string) (State, string) {
		checks := Judge(f).Checks
		c := checks[slices.IndexFunc(checks, func(c Outcome) bool { return c.Name == name })]
		return c.State, c.Reason
	}
	empty, blocked, down := whole(), whole(), whole()
	empty.Folder.Value, empty.CRI.Value.Loaded, empty.Binaries.Value = fact.Folder{Dir: "/etc/cni/net.d"}, nil, nil
	agentless := whole()
	agentless.CRI.Value.Loaded, agentless.Agents.Value = nil, nil
	blocked.Folder.Value.Blocking = "00-bad.conflist"
	down.Runtime.Err, down.CRI.Err, down.Scope.Err = errors.New("refused"), fact.ErrSilent, control.ErrNotRunning
	for _, test := range []struct {
		f     *fact.Facts
		check string
		state State
		says  string
	}{
		{empty, "cni-binaries", NotApplicable, "see cni-folder"},
		{empty, "cni-loaded", NotApplicable, "see cni-folder"},
		{empty, "cni-order", NotApplicable, "see cni-folder"},
		{agentless, "cni-agent", NotApplicable, "of a loaded network"},
		{blocked, "cni-order", NotApplicable, "see cni-folder"},
		{down, "nri", Unchecked, fact.ErrSilent.Error()}, // its socket outlives the runtime
	} {
		if state, reason := state(test.f, test.check); state != test.state || !strings.Contains(reason, test.says) {
			t.Errorf("%s: %s: %s", test.check, state, reason)
		}
	}
}

// Before: remedies pointed to checks that had found nothing.
func TestARemedyPointsOnlyToAFinding(t *testing.T) {
	pod := fact.Container{
		Name: "agent", Namespace: "kube-system", Pod: "cilium-x", SandboxReady: true, Mounts: []string{"/etc/cni/net.d"},
		State: "running",
	}
	failing := pod
	failing.State, failing.ExitCode = "exited", 1
	wants := regexp.MustCompile(`(?:see |and )(runtime|cni-\w+|network-\w+|service-\w+|calls|locks|forwarding)\b`)
	for name, change := range map[string]func(*fact.Facts){
		"empty": func(f *fact.Facts) { f.Folder.Value.Networks, f.CRI.Value.Loaded = nil, nil },
		"a pod starts": func(f *fact.Facts) {
			f.Folder.Value.Networks, f.CRI.Value.Loaded, f.Containers.Value = nil, nil, []fact.Container{pod}
		},
		"a pod fails": func(f *fact.Facts) {
			f.Folder.Value.Networks, f.CRI.Value.Loaded, f.Containers.Value = nil, nil, []fact.Container{failing}
		},
		"STATUS":        func(*fact.Facts) {},
		"rejected":      func(f *fact.Facts) { f.CRI.Value.Told = false },
		"wants more":    func(f *fact.Facts) { f.CRI.Value.NetworkReason = "cni plugin not initialized" },
		"DNS":           func(f *fact.Facts) { f.DNS.Value.Err = "i/o timeout" },
		"an agent":      func(f *fact.Facts) { f.Agents.Value[0].Reach = fact.Refused },
		"an API server": func(f *fact.Facts) { f.Agents.Value[0].Reach, f.Agents.Value[0].Server = fact.Refused, "10.0.0.1:443" },
		"a plugin": func(f *fact.Facts) {
			f.Binaries.Value[0].Wrong = &event.Program{Name: "cilium-cni", Fault: event.FaultAbsent}
		},
		"CRI hangs":       func(f *fact.Facts) { f.CRI.Err = errors.New("code = DeadlineExceeded") },
		"the runtime":     func(f *fact.Facts) { f.Runtime.Err, f.CRI.Err = errors.New("refused"), fact.ErrSilent },
		"no directory":    func(f *fact.Facts) { f.Folder.Value = fact.Folder{Missing: true} },
		"an invalid file": func(f *fact.Facts) { f.Folder.Value.Blocking = "00-bad.conflist" },
	} {
		f := whole()
		f.CRI.Value.Network = false
		change(f)
		r := Judge(f)
		for _, x := range r.Findings {
			for _, to := range wants.FindAllStringSubmatch(strings.Join(x.Remedy, "\n"), -1) {
				if !slices.ContainsFunc(r.Findings, func(x Finding) bool { return x.Check == to[1] }) {
					t.Errorf("%s: %s: %q, but %s found nothing", name, x.Check, x.Remedy, to[1])
				}
			}
		}
		if name == "a pod fails" && !strings.Contains(strings.Join(r.Findings[0].Remedy, ""), "see network-pods") {
			t.Errorf("%+v", r.Findings[0])
		}
	}
}
