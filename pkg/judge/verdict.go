package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// rules are in order of preference: the special before the general.
func rules() []rule {
	return []rule{
		haltedPlugin, deadActor, starved, leakedChild, agentEnded, apiServer, refusedAgent, dad, slowMount, heldLock, contended,
		iptablesRetry, polledFile, retriedCommand, powerShell, hostLocalScan, manyCommands, slowCommand, sharedHold, slowPeer,
		stoppedAgent, idleAgent, slowAgent, largest(CauseNetwork, Network), systemCall, sleeping,
		largest(CauseRuntime, Between), slowPlugin, unexplained,
	}
}

const (
	// enough is the share of the longest finding's time that a more special one must explain.
	enough = 0.8
	// worth is the share of a call that a second cause must explain if the first explains less than half.
	worth = 0.2
)

func (e *evidence) verdict() *Verdict {
	if e.Slow == 0 && e.Failure == "" && !e.call.Hung && !e.Unusual {
		return nil
	}
	killed := e.Failed != nil && e.Failed.Signal == "SIGKILL" && (e.Slow > 0 || e.call.Hung)
	if e.Failure != "" && !killed {
		v := e.failure()
		v.Certain = true // the plugin's own words
		return v
	}
	f := e.slow()
	if f == nil {
		return nil
	}
	if killed { // the runtime killed it
		f.say(fmt.Sprintf("; then plugin %s was killed", e.Failed.Run.Plugin))
	}
	return &f.Verdict
}

func (v *Verdict) say(more string) {
	v.Says += more
	if v.Own != "" {
		v.Own += more
	}
}

func (e *evidence) slow() *finding {
	var found []*finding
	for _, rule := range rules() {
		if f := rule(e); f != nil && f.time > 0 {
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		return nil
	}
	best := e.best(found)
	v := *best
	if best.candidate {
		v.Remedy = ""
	}
	v.Says = fmt.Sprintf("%s of %s: %s", text.Round(best.time), text.Round(e.Took), v.Says)
	v.Certain = !best.candidate && !best.shared
	if next := e.next(best, found); next != nil {
		v.Says += fmt.Sprintf("; %s: %s", text.Round(next.time), next.Says)
		v.Certain = v.Certain && !next.candidate && !next.shared
	}
	if v.Own = e.own(v.Says); !v.Certain { // its paths and programs may belong to another namespace
		v.Own = fmt.Sprintf("%s of %s: an agent worked, possibly for another pod", text.Round(best.time), text.Round(e.Took))
	}
	if v.Own == v.Says {
		v.Own = ""
	}
	if also := meanwhile(best.agent); also != "" {
		v.Own = cmp.Or(v.Own, v.Says) // it is about other calls
		v.Says += also
		if v.Cause == CauseAgent || v.Cause == CausePeer && !v.known { // the candidate may be the cause
			v.Remedy = ""
		}
	}
	if e.call.Reconfigured != 0 {
		v.say(fmt.Sprintf("; a file in the CNI directory was written during this call, so "+
			"other CNI calls waited up to %s for this call to end",
			text.Round(time.Duration(e.call.End-e.call.Reconfigured))))
	}
	return &v
}

func (e *evidence) best(found []*finding) *finding {
	longest := slices.MaxFunc(found, func(a, b *finding) int { return cmp.Compare(a.time, b.time) })
	for _, f := range found {
		some := float64(f.time) >= enough*float64(longest.time) || f.shared && f.time > e.Took/2
		if f.overall || some && !e.inARow(f, longest) {
			return f
		}
	}
	return longest
}

// inARow reports whether two findings explain different times. Unexplained time does not count: another finding may
// explain it.
func (e *evidence) inARow(a, b *finding) bool {
	return a.kind != b.kind && a.time+b.time <= e.Took && b.kind != Unexplained && b.kind != Waiting
}

func (e *evidence) next(best *finding, found []*finding) (next *finding) {
	if best.overall {
		return nil
	}
	least := time.Duration(worth * float64(e.Took))
	if best.time > e.Took/2 {
		least = time.Duration(enough * float64(best.time))
	}
	for _, f := range found {
		if f.kind == best.kind || f.overall || f.time < least || best.time > e.Took/2 && !e.inARow(best, f) {
			continue
		}
		if next == nil || f.time > next.time {
			next = f
		}
	}
	return next
}

func (e *evidence) failure() *Verdict {
	switch {
	case e.Failed == nil && len(e.call.NeverRun) > 0:
		return missing(e)
	case e.Failed == nil:
		return e.afterThePlugins()
	}
	if v := unstartableRun(e); v != nil {
		return v
	}
	if v := busyAgent(e); v != nil {
		return v
	}
	if c := endedLast(e.Failed); c != nil {
		v := ending(c, e.Failure, false)
		return &v
	}
	if f := e.peerEndedLast(e.Failed); f != nil && !f.candidate {
		f.Says = e.Failure + "; " + f.Says
		return &f.Verdict
	}
	k := known(e.Failed)
	if c := refusedLast(e.Failed); c != nil {
		return e.refused(c, k)
	}
	v := &Verdict{Cause: CauseFailed, Says: e.Failure}
	switch {
	case k != nil:
		v.Remedy, v.Report = k.Remedy, k.Report
		e.found(v)
	case bare(e.call) == e.Failed:
		v.Remedy, v.Report = "set ipam in the CNI configuration of the plugin that makes the pod's interface: the runtime "+
			"needs an IP address", "containerd/containerd#2540"
	case !e.Failed.Failed():
		v.Remedy = fmt.Sprintf("have plugin %s, and each command that it runs, write nothing but its result to standard "+
			"output: prevResult if it changes nothing, no log lines", e.Failed.Run.Plugin)
	}
	if e.Slow > 0 {
		if slow := e.slow(); slow != nil {
			if v.Own != "" || slow.Own != "" {
				v.Own = cmp.Or(v.Own, v.Says) + "; " + cmp.Or(slow.Own, slow.Says)
			}
			v.Says += "; " + slow.Says
			if slow.heldUp { // it is why nothing answered
				v.Cause, v.Remedy, v.Report = slow.Cause, slow.Remedy, slow.Report
			}
		}
	}
	return v
}

func (e *evidence) afterThePlugins() *Verdict {
	v := &Verdict{Cause: CauseRuntime, Says: e.Failure, Remedy: undoneRemedy}
	start := &model.Start{Steps: e.call.Broken}
	if broken := failedStart(start, &Started{Parts: startParts(start)}); broken != nil {
		v.Cause, v.Says, v.Remedy = broken.Cause, v.Says+"; "+broken.Says, broken.Remedy
	}
	e.found(v)
	return v
}

func (e *evidence) refused(c *model.Connection, k *KnownFailure) *Verdict {
	v := refusal(c, "plugin "+e.Failed.Run.Plugin)
	why := refusals[c.Error]
	switch quoted := why != "" && strings.Contains(e.Failure, c.Address) && strings.Contains(e.Failure, why); {
	case !quoted:
		v.Says = e.Failure + "; " + v.Says
	case c.Tries > 1:
		v.Says = fmt.Sprintf("%s; it tried %d times", e.Failure, c.Tries)
	default:
		v.Says = e.Failure
	}
	if k != nil { // it names the agent that should listen there
		v.Remedy, v.Report = k.Remedy, k.Report
	}
	return &v
}

const undoneRemedy = "run kubectl describe pod, or journalctl -u containerd (crio) for that time; fix what the runtime reports there: " +
	"the plugins gave the pod its network, and a later step of the sandbox failed"

// own returns the sentence says for users who may see only one namespace, without the names of other pods.
func (e *evidence) own(says string) string {
	var others []string
	for _, w := range e.waits {
		lock, is := w.what.(*model.Wait)
		if is && lock.Blame != nil && lock.Blame.Pod.Name != "" && lock.Blame.Pod.Namespace != e.namespace {
			others = append(others, forPod(lock.Blame))
		}
	}
	// Longest first: db is a prefix of db-backup.
	slices.SortFunc(others, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, other := range others {
		says = strings.ReplaceAll(says, other, " for another pod")
	}
	return says
}

func forPod(b *model.Blame) string { return " for pod " + b.Pod.Namespace + "/" + b.Pod.Name }
