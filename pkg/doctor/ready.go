package doctor

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
)

func networkIsReady(f *fact.Facts) ([]Finding, error) {
	if f.CRI.Value.Network {
		return nil, nil
	}
	_, step, remedy := missingStep(f)
	said := []string{strings.TrimSuffix(fact.Sayf("%s reports NetworkReady=false: %s", f.Runtime.Value.Called(),
		f.CRI.Value.NetworkReason), ": ")}
	if see(f, "", "cni-folder") == "" {
		said = append(said, loadError(f)...)
	}
	return []Finding{Problem.finding("the node's network is not ready: "+step, append(said, writersSay(f)...),
		remedy...)}, nil
}

func writersSay(f *fact.Facts) (said []string) {
	if f.Folder.Err != nil || len(f.Folder.Value.Networks) > 0 {
		return nil
	}
	for _, c := range writers(f) {
		if c.LastLine != "" && (c.State != "exited" || c.ExitCode != 0) {
			said = append(said, fact.Sayf("the last log line of %s (%s) of pod %s/%s: %s", c.Name, c.State, c.Namespace, c.Pod,
				c.LastLine))
		}
	}
	for _, p := range agentProcesses(f) {
		if p.LastLine != "" {
			said = append(said, fact.Sayf("the last log line of %s, process %d: %s", p.Name, p.PID, p.LastLine))
		}
	}
	if f.Containers.Err == nil && len(writers(f)) == 0 && len(agentProcesses(f)) == 0 {
		said = append(said, "no container mounts that directory, no container belongs to a known CNI, and no agent of a CNI "+
			"runs outside containers")
	}
	return said[:min(len(said), fact.Listed)]
}

func writers(f *fact.Facts) []fact.Container {
	return slices.DeleteFunc(slices.Clone(f.Containers.Value), func(c fact.Container) bool {
		return !c.Writes() || !c.SandboxReady
	})
}

func agentProcesses(f *fact.Facts) (found []fact.Process) {
	for _, p := range f.Processes.Value {
		reported := slices.ContainsFunc(f.Containers.Value, func(c fact.Container) bool { return c.ID == p.Container })
		if p.HostNet && !p.Plugin && !reported && slices.Contains(fact.AgentNames(), p.Name) && p.Name != "k3s" {
			found = append(found, p)
		}
	}
	return found
}

func missingStep(f *fact.Facts) (lacks event.Lack, step string, remedy []string) {
	d, r := f.Folder.Value, f.Runtime.Value
	unknown, _ := versionsAreKnown(f)
	switch {
	case f.CRI.Err != nil:
		return event.LackRuntime, fact.Sayf("%s's CRI does not answer: %s", r.Called(), f.CRI.Err), []string{r.Status()}
	case f.Folder.Err != nil:
		return event.LackFolder, fact.Sayf("the CNI directory cannot be read: %s", f.Folder.Err),
			[]string{"run doctor as root"}
	case d.Missing:
		return event.LackFolder, fact.Sayf("there is no CNI directory %s", d.Dir), []string{"see cni-folder"}
	case d.Blocking != "":
		return event.LackFolder, fact.Sayf("%s in %s %s", d.Blocking, d.Dir, invalid(d)), []string{"see cni-folder"}
	case len(d.Networks) == 0:
		step, remedy = nobodyWrote(f)
		return event.LackConfiguration, step, remedy
	case len(f.CRI.Value.Loaded) == 0:
		return event.LackPlugin, fact.Sayf("%s has not loaded %s", r.Called(), d.Networks[0].File), []string{"see cni-loaded"}
	case !f.CRI.Value.Told:
		return event.LackPlugin, fact.Sayf("%s rejects %s", r.Called(), d.Networks[0].File),
			[]string{see(f, r.Journal(), "cni-binaries", "cni-version", "cni-agent")}
	case strings.Contains(f.CRI.Value.NetworkReason, "not initialized"):
		step = fact.Sayf("%s wants more networks than the %d it has loaded", r.Called(), len(f.CRI.Value.Loaded))
		return event.LackConfiguration, step, []string{fact.Sayf(
			"add the missing CNI configurations to %s, or lower max_conf_num of containerd's CRI plugin", d.Dir)}
	case len(unknown) > 0:
		return event.LackPlugin, unknown[0].Summary, []string{"see cni-version"}
	}
	// Since cniVersion 1.1.0 containerd asks the plugins' STATUS.
	return event.LackStatus, "the plugins' STATUS reports that the network is not ready",
		[]string{see(f, "find the CNI's agent and start it: kubectl -n kube-system get pods -o wide", "cni-agent",
			"network-pods")}
}

func nobodyWrote(f *fact.Facts) (step string, remedy []string) {
	d := f.Folder.Value
	step = fact.Sayf("no CNI configuration has been written into %s", d.Dir)
	names, remedy, failed := expected(f)
	if len(names) > 0 {
		step += " by " + fact.List(names)
	}
	switch {
	case len(d.Elsewhere) > 0:
		other := filepath.Dir(d.Elsewhere[0])
		move := []string{
			fact.Sayf("if this cluster's CNI wrote %s, make it write into %s (Cilium: cni.confPath; most others: a "+
				"hostPath of the DaemonSet)", d.Elsewhere[0], d.Dir),
			fact.Sayf("or, in that case, set the runtime's conf_dir to %s and restart the runtime", other),
		}
		if failed {
			return step + fact.Sayf("; %s contains a CNI configuration", other), append(remedy, move...)
		}
		if len(names) == 0 {
			remedy = []string{"otherwise install the cluster's CNI"}
		}
		step = fact.Sayf("%s reads %s, but there is a CNI configuration in %s", f.Runtime.Value.Called(), d.Dir, other)
		return step, append(move, remedy...)
	case len(names) > 0:
		return step, remedy
	case f.Containers.Err != nil:
		return step, []string{"install a CNI, or start its pod"}
	}
	return step + ", and no pod or process of a CNI was found on this node", []string{
		"install a CNI (kubectl apply …, helm, cilium install)",
		"if a CNI is installed, find why its pod does not run on this node: kubectl -n kube-system get pods -o wide",
	}
}

func expected(f *fact.Facts) (names, remedy []string, failed bool) {
	if f.Containers.Err != nil {
		return nil, nil, false
	}
	var logs []string
	for _, c := range writers(f) {
		names = append(names, c.Pod+" (container "+c.Name+": "+c.State+")")
		logs = append(logs, fact.Sayf("read its log: kubectl -n %s logs %s -c %s", c.Namespace, c.Pod, c.Name))
		failed = failed || troubleOf(c, f.Now) != ""
	}
	for _, p := range agentProcesses(f) {
		names = append(names, fact.Sayf("%s (process %d, since %s)", p.Name, p.PID, stamp(p.Start)))
		remedy = append(remedy, fact.Sayf("read the log of %s: journalctl _PID=%d -e", p.Name, p.PID))
	}
	if failed {
		return names, append([]string{"see network-pods"}, remedy...), true
	}
	return names, append(remedy, logs[:min(len(logs), 2)]...), false
}
