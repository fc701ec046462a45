package judge

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

func apiServer(e *evidence) *finding {
	time, most, plugin, n := e.asked(isAPIServer)
	if most == nil {
		return nil
	}
	return &finding{Verdict: Verdict{
		Cause: CauseAPIServer,
		Says: fmt.Sprintf("plugin %s waited%s for %s, which looks like the API server%s",
			plugin, times(n), most.Address, e.within(plugin, time)),
		Remedy: CauseAPIServer.remedy(),
	}.beside(plugin), time: time, kind: Agents}
}

// isAPIServer recognizes the API server by its address: port 6443 (kubeadm), or 443 of a private address.
func isAPIServer(c *model.Connection) bool {
	if c.Network != "tcp" || c.Error != "" || c.Exchange != nil {
		return false
	}
	to, err := netip.ParseAddrPort(c.Address)
	return err == nil && isAPIServerAddress(to)
}

func isAPIServerAddress(to netip.AddrPort) bool {
	return to.Port() == 6443 || to.Port() == 443 && to.Addr().IsPrivate()
}

func stoppedAgent(e *evidence) *finding {
	time, worst, _, _ := e.asked(func(c *model.Connection) bool {
		return c.Work != nil && c.Exchange == nil && wasHalted(c, calledFor(c))
	})
	if worst == nil {
		return nil
	}
	return &finding{Verdict: Verdict{
		Cause: CauseStopped, Says: e.calling(worst),
		Remedy: remedyFor(worst.Agent, nameOf(worst), stateOf(worst.Work, calledFor(worst))),
	}, time: time, kind: Agents, agent: worst, heldUp: true}
}

func calledFor(c *model.Connection) model.Interval {
	return model.Interval{Start: c.Work.Own.Start, End: c.Work.Own.End}
}

// quiet is the least idle share of a slow connection. On a loaded node samples find half of that, because threads wait
// for a CPU.
const quiet = 0.7

// idleAgent: the agent did nothing for most of the time, then answered. Only an answer names a rate limit
// (busyAgent).
func idleAgent(e *evidence) *finding {
	took, worst, plugin, n := e.asked(isQuiet)
	if worst == nil {
		return nil
	}
	return &finding{Verdict: Verdict{
		Cause: CauseIdle,
		Says: fmt.Sprintf("plugin %s waited for %s%s; %s was idle for %s%s",
			plugin, Peer(worst), times(n), nameOf(worst), text.Round(time.Duration(spent(worst.Work, calledFor(worst), event.AgentIdle))),
			inFunction(worst.Work)),
		Remedy: cmp.Or(ofService(worst, plugin), fmt.Sprintf("read %s's log of that time (kubectl logs --timestamps): "+
			"%[1]s slept, or waited for something that is not traced", nameOf(worst))),
	}, time: took, kind: Agents, agent: worst}
}

func isQuiet(c *model.Connection) bool {
	w := c.Work
	if w == nil || c.Exchange != nil || c.Error != "" || w.Gone != 0 {
		return false
	}
	when := calledFor(c)
	took := when.End - when.Start
	held := spent(w, when, event.AgentStopped, event.AgentFrozen, event.AgentUninterruptible, event.AgentWaiting)
	if spent(w, when, event.AgentIdle) < took/2 || float64(max(w.CPU, held)) > (1-quiet)*float64(took) {
		return false
	}
	var did []model.Interval
	for _, im := range w.Own.Children {
		did = append(did, model.Interval{Start: im.Start, End: min(im.End, when.End)})
	}
	for _, f := range w.Own.Facts {
		at, counts := f.When, asks(f.Kind())
		if c, is := f.What.(*model.Connection); is && c.Exchange != nil {
			at, counts = asksFor(c, f.When)
			counts = counts && mayBeFor(w, at, when)
		} else if is {
			counts = true
		}
		if counts {
			did = append(did, model.Interval{Start: at.Start, End: min(at.End, when.End)})
		}
	}
	for _, m := range w.Meanwhile {
		if deed(m) != "" {
			did = append(did, m.When)
		}
	}
	return float64(covered(did)) <= (1-quiet)*float64(took)
}

func slowAgent(e *evidence) *finding {
	time, worst, plugin, _ := e.asked(func(c *model.Connection) bool { return c.Error == "" && c.Exchange == nil })
	if worst == nil {
		return nil
	}
	says := e.calling(worst)
	if says != "" && inFunction(worst.Work) == "" {
		says += e.within(plugin, time)
	}
	return &finding{Verdict: Verdict{
		Cause: CauseAgent, Says: says, Remedy: agentRemedy(worst, plugin),
	}.beside(plugin), time: time, kind: Agents, agent: worst}
}

// within says where a plugin was, if it waited for most of its time.
func (e *evidence) within(plugin string, waited time.Duration) string {
	for i := range e.spans {
		s := &e.spans[i]
		own := s.image.Run != nil && s.agent == nil && s.plugin == plugin
		if own && 2*int64(waited) > s.end-s.start && s.in() != "" {
			return ", " + s.in()
		}
	}
	return ""
}

func (e *evidence) calling(c *model.Connection) string {
	for i := range e.Parts {
		if p := &e.Parts[i]; p.Kind == Agents && (p.Name == Peer(c) || p.peer == c) {
			return p.String()
		}
	}
	return ""
}

func agentRemedy(c *model.Connection, plugin string) string {
	if c.Agent == nil {
		return silent(c, plugin)
	}
	if c.Work != nil {
		when := calledFor(c)
		state := stateOf(c.Work, when)
		if half := (when.End - when.Start) / 2; state == nil && c.Work.CPU >= half {
			state = &model.Spent{State: event.AgentRunning}
		} else if state != nil && state.State == event.AgentRunning && state.Time < half {
			state = nil
		}
		if r := remedyFor(c.Agent, nameOf(c), state); r != "" {
			return r
		}
	}
	return fmt.Sprintf("read %s's log of that time (kubectl logs --timestamps); raise the CPU limit of %[1]s"+ifThrottled, nameOf(c))
}

func slowPeer(e *evidence) *finding {
	for i := range e.Parts { // largest first
		p := &e.Parts[i]
		if p.Kind != Agents || p.Asked == "" || p.peer == nil {
			continue
		}
		return &finding{
			Verdict: Verdict{Cause: CausePeer, Says: p.String(), Remedy: peerRemedy(p.peer, p.In, p.when)},
			time:    p.Time, kind: Agents, candidate: p.Doubtful(), agent: p.peer,
			heldUp: heldUp(p.peer, p.when), known: stateOf(p.peer.Work, p.when) != nil,
		}
	}
	return nil
}

func peerRemedy(c *model.Connection, plugin string, when model.Interval) string {
	if c.Agent == nil || c.Agent.PID == 0 {
		return silent(c, plugin)
	}
	if r := remedyFor(c.Agent, peerName(c), stateOf(c.Work, when)); r != "" || c.Work == nil || len(c.Work.States) == 0 {
		return r
	}
	for f, next := range model.Each[*model.Connection](c.Work.Own.Facts) {
		if next.Exchange != nil && min(f.When.End, when.End)-max(f.When.Start, when.Start) > (when.End-when.Start)/2 {
			return "" // which may be the cause
		}
	}
	return fmt.Sprintf("read the log of %s (pid %d) of that time: its answer took that long, without an observed wait", peerName(c), c.Agent.PID)
}

// sharedHold: the agent waited for a halted process, or ran a program, possibly for other calls. All calls wait for
// that, so the remedy holds for each.
func sharedHold(e *evidence) *finding {
	_, c, plugin, _ := e.asked(func(c *model.Connection) bool { return c.Error == "" && c.Work != nil })
	if c == nil || wasHalted(c, calledFor(c)) {
		return nil
	}
	own, _, _, _ := e.asked(func(of *model.Connection) bool { return of == c })
	for _, most := range []*deeds{longest(c.Work.Meanwhile, true), longest(c.Work.Meanwhile, false)} {
		if most == nil {
			continue
		}
		if f := most.finding(c, plugin); f != nil {
			f.time, f.kind, f.shared = min(own, time.Duration(most.took())), Agents, true
			return f
		}
	}
	return nil
}

func (d *deeds) finding(c *model.Connection, plugin string) *finding {
	if d.most.Image != nil {
		if !d.most.Perhaps { // the call may have waited for something else
			return nil
		}
		name := d.most.Image.Name
		v := Verdict{Cause: CauseCommand, Remedy: instead(name)}
		if v.Remedy == "" {
			v.Remedy = raiseLimit(c, name)
		}
		v.Says = fmt.Sprintf("%s, %s, ran %s%s, while plugin %s waited", Peer(c), d.whose(), name, times(len(d.when)), plugin)
		return &finding{Verdict: v}
	}
	next := d.connection()
	if next == nil {
		return nil
	}
	last, _ := furthest(next, d.most.When)
	if !wasHalted(last, d.most.When) {
		return nil
	}
	return &finding{heldUp: true, Verdict: Verdict{
		Cause: CausePeer, Remedy: remedyFor(last.Agent, peerName(last), stateOf(last.Work, d.most.When)),
		Says: fmt.Sprintf("plugin %s waited while %s, %s, waited for %s", plugin, nameOf(c), d.whose(), behindWhom(next, d.most.When)),
	}}
}

func busyAgent(e *evidence) *Verdict {
	r := result(e.Failed)
	if r == nil || !tooMany(r.Message) {
		return nil
	}
	v := Verdict{
		Cause: CauseBusy,
		Says: fmt.Sprintf("the agent of plugin %s rejected the request (too many requests); %s",
			e.Failed.Run.Plugin, e.Failure),
		Remedy: CauseBusy.remedy(),
	}.beside(e.Failed.Run.Plugin)
	return &v
}

// tooMany recognizes HTTP 429 (RFC 6585, 4) and gRPC 8 as plugins quote them.
func tooMany(message string) bool {
	said := strings.ToLower(message)
	if strings.Contains(said, "client rate limiter") { // the plugin's own limit
		return false
	}
	said = strings.ReplaceAll(said, " ", "")
	for _, sign := range []string{"toomanyrequests", "resourceexhausted"} {
		if strings.Contains(said, sign) {
			return true
		}
	}
	return regexp.MustCompile(`(\[|http(/[0-9.]+)?|status|code):?=?429\b`).MatchString(said)
}
