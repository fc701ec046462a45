package doctor

import (
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/text"
)

// Without an agent the network is still reported ready, and each ADD fails.
func agentsAnswer(f *fact.Facts) ([]Finding, error) {
	if f.Agents.Err != nil {
		return nil, f.Agents.Err
	}
	if len(f.Agents.Value) == 0 {
		return nil, notApplicable("no plugin of a loaded network is known to call an agent")
	}
	var found []Finding
	for _, a := range f.Agents.Value {
		wrong := wrongWith(f, a)
		if wrong == "" {
			continue
		}
		finding := Problem.finding(fact.Sayf("plugin %s of network \"%s\" %s: %s", a.Plugin, a.Network, place(a), wrong),
			append(shown(f, a), serving(f, a)...), remedyForAgent(f, a)...)
		if a.Seen && a.Reach != fact.Answers && a.Known != nil && a.Known.Failures == 0 && len(waiting(f, a)) == 0 {
			finding.Level = Warning
		}
		if c := starting(f, a); c != nil {
			finding.Level = Warning
			finding.Remedy = append([]string{fact.Sayf("wait: container %s started %s ago; if it does not answer after "+
				"%s, follow the next line", c.Name, seconds(f.Now.Sub(c.Started)), seconds(servesIn))}, finding.Remedy...)
		}
		found = append(found, finding)
	}
	return found, nil
}

const servesIn = 30 * time.Second

func starting(f *fact.Facts, a fact.Agent) *fact.Container {
	if a.Reach != fact.Missing && a.Reach != fact.Refused {
		return nil
	}
	for _, c := range containersOf(f, a) {
		if c.State == "running" && c.Restarts < restartsMany && !c.Started.IsZero() && f.Now.Sub(c.Started) < servesIn {
			return &c
		}
	}
	return nil
}

func place(a fact.Agent) string {
	switch {
	case a.Kind == fact.AsksFile:
		return fact.Sayf("reads its agent's file %s", a.Address)
	case a.Server != "":
		return fact.Sayf("asks the API server at %s (%s)", a.Server, a.Address)
	}
	return fact.Sayf("asks its agent at %s", a.Address)
}

func wrongWith(f *fact.Facts, a fact.Agent) string {
	switch a.Reach {
	case fact.Missing:
		if a.Kind == fact.AsksUnix {
			return "there is no such socket"
		}
		return "there is no such file"
	case fact.Refused:
		return "no process listens there"
	case fact.Silent:
		switch {
		case a.Process != nil && held(*a.Process):
			return fact.Sayf("the listening process %d (%s) is %s", a.Process.PID, a.Process.Name, a.Process.Does())
		case a.Err != "":
			return "there is no answer"
		}
		return "the listening process accepts no connection"
	case fact.Answers:
		if waits := waiting(f, a); len(waits) > 0 {
			return fact.Sayf("the agent accepts connections, but does not answer %s", text.Count(len(waits), "call"))
		}
	}
	return ""
}

func held(s fact.Server) bool { return s.State == event.AgentStopped || s.State == event.AgentFrozen }

func waiting(f *fact.Facts, a fact.Agent) (said []string) {
	for _, c := range f.Scope.Value.Calls {
		if c.Asks != "" && fact.SamePlace(c.Asks, a.Address) && c.Asking >= f.Options.Hung {
			said = append(said, fact.Sayf("CNI %s %s of pod %s/%s has waited for the agent for %s", c.Command, c.IfName,
				c.Namespace, c.Pod, seconds(c.Asking)))
		}
	}
	return said
}

func shown(f *fact.Facts, a fact.Agent) (said []string) {
	said = append(said, fact.Clean(strings.TrimPrefix(a.Err+"; "+a.From(), "; ")))
	if a.Kind == fact.AsksUnix && a.Reach != fact.Missing && !a.Made.IsZero() {
		said = append(said, fact.Sayf("the socket was made at %s", stamp(a.Made)))
	}
	if s := a.Known; s != nil && s.Failures > 0 {
		said = append(said, fact.Sayf("cniscope saw %s fail there since %s, the last at %s: %s",
			text.Count(s.Failures, "call"), since(s.Answered), stamp(s.Failed), s.Error))
	} else if s != nil && !s.Answered.IsZero() {
		said = append(said, fact.Sayf("cniscope last saw an answer at %s, from %s, process %d", stamp(s.Answered), s.Name,
			int(s.PID)))
	}
	said = append(said, waiting(f, a)...)
	if f.CRI.Err == nil && f.CRI.Value.Network {
		said = append(said, fact.Sayf("%s reports NetworkReady=true, so the scheduler still places pods here",
			f.Runtime.Value.Called()))
	}
	return said
}

func since(t time.Time) string {
	if t.IsZero() {
		return "cniscope started"
	}
	return stamp(t)
}

func serving(f *fact.Facts, a fact.Agent) (said []string) {
	if s := a.Process; s != nil {
		said = append(said, fact.Sayf("process %d (%s) listens and is %s; it started at %s", s.PID, s.Name, s.Does(),
			stamp(s.Started)))
		said = append(said, lastLine(s.LastLine)...)
	}
	for _, c := range containersOf(f, a) {
		said = append(said, c.String()+": "+evidenceOf(c))
		said = append(said, lastLine(c.LastLine)...)
		if c.LineBefore != "" {
			said = append(said, "the last log line before the restart: "+fact.Clean(c.LineBefore))
		}
	}
	if a.Process == nil {
		for _, p := range processesOf(f, a) {
			said = append(said, fact.Sayf("process %d is %s, started at %s", p.PID, p.Name, stamp(p.Start)))
			said = append(said, lastLine(p.LastLine)...)
		}
	}
	if len(said) == 0 && a.Server == "" && f.Processes.Err == nil && f.Containers.Err == nil {
		said = append(said, "no process and no container on this node is known to listen there")
	}
	return said
}

func lastLine(line string) []string {
	if line == "" {
		return nil
	}
	return []string{"its last log line: " + fact.Clean(line)}
}

func containersOf(f *fact.Facts, a fact.Agent) []fact.Container {
	if len(a.Containers) > 0 || a.Process != nil || a.Server != "" {
		return a.Containers
	}
	cni, ok := fact.OwnerOfPlugin(a.Plugin)
	if !ok {
		return nil
	}
	var found []fact.Container
	for _, c := range f.Containers.Value {
		if c.SandboxReady && (c.Owner == cni.Name || slices.Contains(cni.Agents, c.Name)) {
			found = append(found, c)
		}
	}
	return found
}

func processesOf(f *fact.Facts, a fact.Agent) (found []fact.Process) {
	cni, _ := fact.OwnerOfPlugin(a.Plugin)
	for _, p := range f.Processes.Value {
		seen := a.Known != nil && p.PID == int(a.Known.PID) && p.Name == a.Known.Name
		if p.HostNet && !p.Plugin && (seen || slices.Contains(cni.Agents, p.Name)) {
			found = append(found, p)
		}
	}
	return found
}

func remedyForAgent(f *fact.Facts, a fact.Agent) (do []string) {
	switch {
	case a.Server != "":
		return []string{fact.Sayf("test the API server from this node: curl -k https://%s/livez; if that is the address of "+
			"a Service, ", a.Server) + see(f, "start the service proxy", "service-proxies", "service-rules")}
	case a.Process != nil && a.Process.State == event.AgentFrozen && a.Process.Group != "":
		return []string{fact.Sayf("thaw it: echo 0 > %s, or use the tool that froze it (docker unpause, a "+
			"checkpoint)", text.Shell(a.Process.Group+"/cgroup.freeze"))}
	case a.Process != nil && a.Process.State == event.AgentStopped:
		return []string{fact.Sayf("resume it: kill -CONT %d; if it stops again, TracerPid in /proc/%d/status is the "+
			"debugger", a.Process.PID, a.Process.PID)}
	case a.Process != nil && len(a.Containers) == 0:
		return []string{fact.Sayf("save its state (cat /proc/%d/stack; journalctl _PID=%d -e), then restart it",
			a.Process.PID, a.Process.PID)}
	}
	for _, c := range containersOf(f, a) {
		do = append(do, fact.Sayf("read the log: kubectl -n %s logs %s -c %s (with --previous: before the restart); then "+
			"recreate the pod: kubectl -n %s delete pod %s", c.Namespace, c.Pod, c.Name, c.Namespace, c.Pod))
	}
	if len(do) > 0 {
		return do[:min(len(do), 2)]
	}
	for _, p := range processesOf(f, a) {
		do = append(do, fact.Sayf("read the log of %s: journalctl _PID=%d -e; then restart it", p.Name, p.PID))
	}
	if len(do) > 0 {
		return do
	}
	name := ""
	if a.Known != nil && a.Known.Name != "" {
		name = fact.Sayf(" (last seen: %s)", a.Known.Name)
	}
	do = []string{
		"start the plugin's agent again" + name,
		"if you do not know the agent: kubectl get pods -A -o wide --field-selector spec.nodeName=NODE; systemctl --failed",
	}
	for _, n := range fact.Winners(f) {
		if n.Name == a.Network {
			do = append(do, "if this CNI is no longer wanted, remove its configuration: "+
				text.Shell(f.Folder.Value.Dir+"/"+n.File))
		}
	}
	return do
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func seconds(d time.Duration) string { return d.Round(time.Second).String() }
