package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/runtime"
)

func runtimeAnswers(f *fact.Facts) ([]Finding, error) {
	r := f.Runtime.Value
	if err := f.Runtime.Err; err != nil {
		switch {
		case fact.Unasked(err):
			return nil, err
		case r.Hidden != "":
			return nil, fmt.Errorf("the node's runtime socket %s is not in this container: mount its directory "+
				"read-only at the same path, or run cniscope doctor on the node", r.Hidden)
		case f.Contained && errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("this container has no runtime socket at %s: mount its directory from the node "+
				"read-only, or run cniscope doctor on the node", f.Options.Address)
		case r.Absent:
			return []Finding{noRuntime()}, nil
		}
		finding := Problem.finding(fact.Sayf("%s does not answer", r.Called()),
			[]string{fact.Sayf("%s: %s", f.Options.Address, err)}, r.Status()+"; "+r.Journal(),
			fact.Sayf("if %s listens at another socket, set %s to its path", r.Called(), socketOption))
		if errors.Is(err, syscall.ECONNREFUSED) {
			finding.Evidence = append(finding.Evidence,
				fact.Sayf("no process listens on this socket: %s exited, or listens at another", r.Called()))
			finding.Remedy[0] = r.Restart() + "; " + r.Journal()
		}
		return []Finding{withoutFolder(f, finding)}, nil
	}
	found := otherRuntimes(f)
	for _, p := range f.Runtime.Value.Plugins {
		if p.Err == "" || !needed(p) {
			continue
		}
		found = append(found, Problem.finding(fact.Sayf("containerd's plugin %s did not start", p.Type+"."+p.ID),
			[]string{fact.Sayf("%s: %s", r.String(), p.Err)}, cmp.Or(judge.KnownRemedy("containerd", p.Err),
				"correct what the error names (usually /etc/containerd/config.toml)")+", then: "+r.Restart()))
	}
	if err := f.CRI.Err; err != nil && !slices.ContainsFunc(found, func(x Finding) bool { return x.Level == Problem }) {
		found = append(found, criSilent(f, err))
	}
	if cri := f.CRI.Value; f.CRI.Err == nil && !cri.Ready {
		found = append(found, Problem.finding(fact.Sayf("%s reports that it cannot run pods", r.Called()),
			[]string{fact.Sayf("RuntimeReady=false: %s", cri.ReadyReason)}, r.Journal()))
	}
	return found, nil
}

const socketOption = "[runtime] socket in cniscope.toml"

func noRuntime() Finding {
	return Problem.finding("no container runtime found on this node", []string{
		"none of these sockets exists: " + fact.List(runtime.Sockets()),
		"the usual directories contain no program of a container runtime",
	}, "install a container runtime", "if a runtime listens at another socket, set "+socketOption+" to its path")
}

func otherRuntimes(f *fact.Facts) []Finding {
	r := f.Runtime.Value
	if len(r.Others) == 0 {
		return nil
	}
	return []Finding{Note.finding(
		fact.Sayf("this node has sockets of several container runtimes: doctor examined %s at %s", r.Called(),
			f.Options.Address),
		[]string{"other sockets: " + fact.List(r.Others)},
		"if kubelet uses another of these sockets, set "+socketOption+" to its path")}
}

func criSilent(f *fact.Facts, err error) Finding {
	r := f.Runtime.Value
	finding := Problem.finding(fact.Sayf("%s answers, but its CRI does not: kubelet cannot run pods", r.Called()),
		[]string{fact.Sayf("CRI Status: %s", err)}, r.Restart())
	if strings.Contains(err.Error(), "Unimplemented") && r.Containerd() && !slices.ContainsFunc(r.Plugins, servesCRI) {
		finding.Summary = "containerd's CRI is switched off: kubelet cannot run pods"
		finding.Evidence = append(finding.Evidence, "containerd lists no plugin io.containerd.grpc.v1.cri")
		finding.Remedy = []string{"take cri and io.containerd.grpc.v1.cri out of disabled_plugins in " +
			"/etc/containerd/config.toml, then: " + r.Restart()}
	}
	if strings.Contains(err.Error(), "DeadlineExceeded") && r.Containerd() {
		// go-cni holds its lock while a plugin runs; a reload waits for it.
		finding.Evidence = append(finding.Evidence,
			"a CNI call that hangs while the CNI directory changes blocks all others")
		finding.Remedy = []string{"find the call that hangs: " + see(f, "cniscope ps", "calls"), r.Restart()}
	}
	return withoutFolder(f, finding)
}

// withoutFolder adds that containerd stops when its CNI folder is removed (internal/cri/server/cni_conf_syncer.go).
func withoutFolder(f *fact.Facts, finding Finding) Finding {
	folder, r := f.Folder.Value, f.Runtime.Value
	switch {
	case f.Folder.Err != nil || !r.Containerd():
	case folder.Missing:
		finding.Evidence = append(finding.Evidence, fact.Sayf("there is no directory %s: containerd stops when its CNI "+
			"directory is removed", folder.Dir))
		finding.Remedy = folderAgain(r)
	case !r.Began.IsZero() && folder.Made.After(r.Began):
		finding.Evidence = append(finding.Evidence, fact.Sayf("directory %s was made again at %s, after containerd started: "+
			"containerd stops when its CNI directory is removed", folder.Dir, stamp(folder.Made)))
	}
	return finding
}

func servesCRI(p fact.RuntimePlugin) bool { return p.Type == "io.containerd.grpc.v1" && p.ID == "cri" }

// needed means that pods' networks or cniscope's names depend on it.
func needed(p fact.RuntimePlugin) bool {
	switch p.Type {
	case "io.containerd.cri.v1", "io.containerd.nri.v1", "io.containerd.podsandbox.controller.v1":
		return true
	}
	return servesCRI(p)
}

func enableNRI(r fact.Runtime) (remedy []string, off string) {
	switch {
	case r.Containerd():
		return []string{
			"cniscope install adds a drop-in for containerd ([plugins.'io.containerd.nri.v1.nri'] disable = false); --dry-run " +
				"shows it",
			r.Restart(),
		}, fact.Sayf("%s; 1.7 has NRI off by default", r.String())
	case r.CRIO():
		return []string{"write a file into /etc/crio/crio.conf.d with [crio.nri] enable_nri = true", r.Restart()},
			fact.Sayf("%s; before 1.30 it has NRI off by default", r.String())
	}
	return []string{fact.Sayf("switch NRI on in the configuration of %s", r.Called()), r.Restart()}, r.String()
}

func nriIsThere(f *fact.Facts) ([]Finding, error) {
	if f.Options.NRISocket == "" {
		return nil, notApplicable("cniscope.toml turns NRI off ([nri] enabled = false)")
	}
	if f.NRI.Err != nil {
		return nil, f.NRI.Err
	}
	r := f.Runtime.Value
	if r.Docker() {
		return nil, notApplicable("cri-dockerd has no NRI: calls are traced without it")
	}
	enable, off := enableNRI(r)
	switch n := f.NRI.Value; {
	case !n.Socket && fact.Unasked(f.Runtime.Err):
		return nil, f.Runtime.Err
	case f.Runtime.Err != nil && !fact.Unasked(f.Runtime.Err):
		return nil, fact.ErrSilent
	case !n.Socket:
		return []Finding{Warning.finding(
			fact.Sayf("%s's NRI is off: spans lack pod labels, pod addresses and the sandbox's start", r.Called()),
			[]string{fact.Sayf("there is no socket %s", f.Options.NRISocket), off},
			append(enable, "if NRI has another socket, set [nri] socket in cniscope.toml to its path")...)}, nil
	case n.Sure && !n.Listening && f.CRI.Err != nil:
		return nil, fact.ErrSilent
	case n.Sure && !n.Listening:
		return []Finding{Warning.finding(fact.Sayf("no process listens on %s's NRI socket", r.Called()),
			[]string{fact.Sayf("an earlier %s left %s behind", r.Called(), f.Options.NRISocket)}, enable...)}, nil
	}
	if errors.Is(f.Scope.Err, control.ErrNotRunning) {
		return []Finding{Note.finding("cniscope does not run on this node",
			[]string{fact.Sayf("no cniscope answers in %s", f.Options.RunDir)},
			"cniscope install, or systemctl enable --now cniscope")}, nil
	}
	if f.Scope.Err != nil {
		return nil, f.Scope.Err
	}
	if s := f.Scope.Value.Node; s.NRI != "registered" {
		return []Finding{Warning.finding("the running cniscope is not registered with NRI",
			[]string{fact.Sayf("according to cniscope %s, process %d", s.Version, s.PID)},
			"read cniscope's log: journalctl -u cniscope -e",
			fact.Sayf("if the NRI socket of %s is not %s, set [nri] socket in cniscope.toml to its path", r.Called(),
				f.Options.NRISocket))}, nil
	}
	return nil, nil
}
