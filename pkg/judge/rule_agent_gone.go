package judge

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

func refusedAgent(e *evidence) *finding {
	time, most, n := e.waited(isRefused)
	if n == 0 {
		return nil
	}
	s := &e.spans[most.span]
	v := refusal(most.connection(), commandOf(s.image))
	if most.part.Asked != "" {
		v.Says = refusal(most.connection(), nameOf(s.agent)).Says + ", while plugin " + s.plugin + " waited"
		v.Remedy = unanswered(most.connection())
	}
	return &finding{Verdict: v, time: time, kind: Agents, candidate: most.candidate}
}

func isRefused(w *wait) bool {
	c := w.connection()
	return c != nil && c.Error != "" && c.Exchange == nil
}

func refusal(c *model.Connection, who string) Verdict {
	often := ""
	if c.Tries > 1 {
		often = fmt.Sprintf("%d times ", c.Tries)
	}
	return Verdict{
		Cause:  CauseRefused,
		Says:   fmt.Sprintf("%s failed %sto connect to %s (%s)", who, often, c.Address, c.Error),
		Remedy: unanswered(c) + ", or correct the address in the plugin's configuration",
		Report: "containerd/containerd#4666",
	}
}

func unanswered(c *model.Connection) string {
	host := c.Address
	if to, err := netip.ParseAddrPort(host); err == nil {
		host = to.Addr().String()
	}
	switch c.Error {
	case "ETIMEDOUT":
		return fmt.Sprintf("start the machine behind %s, open the packet filters on the way to it (nft list ruleset, network policies)", host)
	case "EHOSTUNREACH", "ENETUNREACH":
		return fmt.Sprintf("add a route to %s (ip route get %[1]s names the missing route), start the machine behind it", host)
	}
	return fmt.Sprintf("start the agent that listens at %s (kubectl logs --previous shows why it exited)", c.Address)
}

// refusedLast returns a failed run's last connection if it was unanswered, else nil: the run continued without it.
func refusedLast(run *model.Image) (last *model.Connection) {
	end := int64(0)
	for f, c := range model.Each[*model.Connection](run.Facts) {
		// libc connects to nscd(8) first.
		if !strings.Contains(c.Address, "/nscd/") && (last == nil || f.When.End >= end) {
			last, end = c, f.When.End
		}
	}
	if last == nil || last.Error == "" || time.Duration(run.End-end) > aftermath {
		return nil
	}
	return last
}

var refusals = map[string]string{
	"ECONNREFUSED": "connection refused", "ENOENT": "no such file or directory", "ETIMEDOUT": "connection timed out",
	"EHOSTUNREACH": "no route to host", "ENETUNREACH": "network is unreachable",
}

// aftermath bounds a plugin's cleanup after the unanswered connection that made it fail.
const aftermath = 2 * time.Second

const whyExited = "run kubectl logs --previous for its last lines; run kubectl describe pod for its exit code (Last State) and " +
	"failed probes (Events); for a host service, read the journal"

func agentEnded(e *evidence) *finding {
	var gone *model.Connection
	for i := range e.waits {
		if c := e.waits[i].connection(); c != nil && ended(c) && (gone == nil || c.Work.Gone > gone.Work.Gone) {
			gone = c
		}
	}
	if s := e.endedPeer(); s != nil && (gone == nil || s.agent.Work.Gone > gone.Work.Gone) {
		return e.withoutPeer(s)
	}
	if gone == nil {
		return nil
	}
	time, _, plugin, _ := e.asked(func(c *model.Connection) bool { return c.Address == gone.Address })
	says := "plugin " + plugin + " waited for " + Peer(gone)
	return &finding{Verdict: ending(gone, says, e.restarted(gone)), time: time, kind: Agents, agent: gone}
}

func ended(c *model.Connection) bool { return c.Work != nil && c.Work.Gone != 0 }

func (e *evidence) restarted(gone *model.Connection) bool {
	return gone.Work.Successor != nil && gone.Work.Back < e.call.End
}

func (e *evidence) endedPeer() (last *span) {
	for i := range e.spans {
		s := &e.spans[i]
		if s.agent != nil && s.agent.Exchange != nil && ended(s.agent) && (last == nil || s.agent.Work.Gone > last.agent.Work.Gone) {
			last = s
		}
	}
	return last
}

// withoutPeer attributes the wait for a process that ended, and the unanswered time until another one answered.
func (e *evidence) withoutPeer(s *span) *finding {
	gone, until := s.agent, e.call.End
	if e.restarted(gone) {
		until = gone.Work.Back
	}
	took, _, _, _ := e.asked(func(c *model.Connection) bool { return c == gone })
	for i := range e.spans {
		if asker := &e.spans[i]; asker.agent != nil && asker.agent == s.served {
			took += time.Duration(max(0, min(asker.own, min(asker.end, until)-gone.Work.Gone)))
		}
	}
	for i := range e.waits {
		w := &e.waits[i]
		if isRefused(w) && e.spans[w.span].agent == s.served && w.start >= gone.Work.Gone && w.start < until {
			took += time.Duration(w.own)
		}
	}
	return &finding{
		Verdict: ending(gone, "plugin "+s.plugin+" waited for "+peerName(gone)+", "+s.via, e.restarted(gone)),
		time:    took, kind: Agents, candidate: s.candidate, agent: gone, heldUp: e.call.End-until < int64(aftermath),
	}
}

func ending(gone *model.Connection, waiting string, restarted bool) Verdict {
	who, w := nameOf(gone), gone.Work
	v, how, since := Verdict{Cause: CauseEnded}, "exited", "it was called"
	if gone.Exchange != nil {
		since = "the wait began"
	}
	switch {
	case w.Killed == "OOM":
		v.Cause, how = CauseOOM, "was OOM-killed"
		v.Remedy = fmt.Sprintf("raise the memory limit of %s (resources.limits.memory); if dmesg says constraint=CONSTRAINT_NONE, the whole node ran out of memory: move pods off the node", who)
	case restarted:
		v.Cause = CauseRestarted
		v.Remedy = fmt.Sprintf("fix why %s exited, unless it was restarted on purpose; "+whyExited, who)
	default:
		v.Remedy = fmt.Sprintf("start %s again and fix why it exited; "+whyExited, who)
	}
	v.Says = fmt.Sprintf("%s; %s (pid %d) %s %s after %s",
		waiting, who, gone.Agent.PID, how, text.Round(time.Duration(w.Gone-w.Own.Start)), since)
	if w.Successor != nil {
		v.Says += fmt.Sprintf("; the new process (pid %d) answered %s after the exit",
			w.Successor.PID, text.Round(time.Duration(w.Back-w.Gone)))
	}
	return v
}

// endedLast returns the connection of a failed run whose agent ended, unless the run called another process
// afterwards.
func endedLast(run *model.Image) (last *model.Connection) {
	for f, c := range model.Each[*model.Connection](run.Facts) {
		if ended(c) {
			last = c
		} else if last != nil && f.When.Start >= last.Work.Gone && c.Error == "" {
			last = nil
		}
	}
	return last
}

// peerEndedLast is the finding for a process that ended shortly before the run failed, while the run's agent waited
// for it.
func (e *evidence) peerEndedLast(run *model.Image) *finding {
	s := e.endedPeer()
	if s == nil || s.plugin != run.Run.Plugin || e.restarted(s.agent) || run.End-s.agent.Work.Gone > int64(aftermath) {
		return nil
	}
	return e.withoutPeer(s)
}

// actorOf names the process that acts on what a command wrote.
func actorOf(command string) string {
	if command == "ovs-vsctl" {
		return "ovs-vswitchd"
	}
	return ""
}

func actsFor(call *model.Call) (name string) {
	for _, run := range call.Runs {
		run.Walk(func(im *model.Image) {
			if took := im.End - im.Start; took > (call.End-call.Start)/2 && took > int64(time.Second) {
				name = cmp.Or(name, actorOf(im.Name))
			}
		})
	}
	return name
}

func deadActor(e *evidence) *finding {
	found := e.call.Found
	if found == nil || found.Kind != event.FoundProcess || !found.Absent {
		return nil
	}
	var most *span
	for i := range e.spans {
		if s := &e.spans[i]; actorOf(s.image.Name) == found.Name && (most == nil || s.end-s.start > most.end-most.start) {
			most = s
		}
	}
	if most == nil {
		return nil
	}
	command := most.image.Name
	return &finding{
		Verdict: Verdict{
			Cause:  CausePeer,
			Says:   fmt.Sprintf("plugin %s waited for %s (not running), through %s", most.plugin, found.Name, command),
			Report: "openshift/origin#19531",
			Remedy: fmt.Sprintf("start %[1]s (systemctl start %[1]s, or delete its pod), "+
				"and give %[2]s --timeout, which has no limit by default", found.Name, command),
		}, time: time.Duration(most.end - most.start), kind: Agents, shared: most.candidate, agent: most.served, heldUp: true,
		known: true,
	}
}
