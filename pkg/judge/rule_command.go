package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// many is the least number of commands: an ordinary ADD of bridge and portmap runs 36.
const many = 40

// manyCommands: no command is slow, but there are many. If few runs of one program dominate, it is slowCommand.
func manyCommands(e *evidence) *finding {
	var sum, candidate, longest time.Duration
	n := 0
	all := e.programs()
	for _, p := range all {
		sum += p.time
		if p.candidate {
			candidate += p.time
		}
		n += p.runs
		longest = max(longest, p.longest)
	}
	if n < many || longest > sum/4 {
		return nil
	}
	most := all[0] // the longest in sum
	says := fmt.Sprintf("%d commands ran, %d of them %s", n, most.runs, most.name)
	if most.runs == n {
		says = most.String()
	} else if most.runs < n/2 {
		if most.time > sum/2 {
			return nil
		}
		says = fmt.Sprintf("%d commands ran, %s %d times for %s", n, most.name, most.runs, text.Round(most.time))
	}
	return &finding{Verdict: Verdict{
		Cause: CauseCommands, Says: says, Remedy: atOnce(most.name) + most.longTable(), Report: "containernetworking/plugins#510",
	}, time: sum, kind: Commands, candidate: candidate > sum/2}
}

func atOnce(command string) string {
	if n := native(command); n != "" {
		return fmt.Sprintf("replace the runs of %s with %s", command, n)
	}
	return "replace the runs with batches (iptables-restore, ip -batch, nft -f), or switch off features of the plugin that the node does not need"
}

func slowCommand(e *evidence) *finding {
	all := e.programs()
	if len(all) == 0 {
		return nil
	}
	p := all[0]
	f := &finding{
		Verdict: Verdict{Cause: CauseCommand, Says: p.String() + e.unconfirmed(p), Remedy: p.remedy()},
		time:    p.time, kind: Commands, candidate: p.candidate, agent: p.by[0].connection,
	}
	if c := awaited(p.slowest); c != nil {
		f.Says += "; it waited for " + Peer(c)
		if resolver(p.slowest) == nil {
			f.Remedy = silent(c, p.by[0].plugin)
		}
	}
	return f
}

// awaited returns the connection that a run waited for longer than half of its time, or nil.
func awaited(run *model.Image) (longest *model.Connection) {
	most := (run.End - run.Start) / 2
	run.Walk(func(im *model.Image) {
		for f, c := range model.Each[*model.Connection](im.Facts) {
			if took := min(f.When.End, im.End) - f.When.Start; took > most && c.Agent == nil && c.Error == "" {
				most, longest = took, c
			}
		}
	})
	return longest
}

func (p *program) remedy() string {
	if im := resolver(p.slowest); im != nil {
		return fmt.Sprintf("add -n to %s %s, which %s runs, or fix the nameserver in /etc/resolv.conf: without -n "+
			"the command resolves each address", im.Name, strings.Join(im.Args, " "), p.caller())
	}
	if r := instead(p.name); r != "" {
		return r + p.longTable()
	}
	switch "sleep" {
	case p.name:
		return fmt.Sprintf("remove the command sleep from %s", p.caller())
	case p.inner:
		return fmt.Sprintf("remove the command sleep from %s", p.name)
	}
	return fmt.Sprintf("run strace -f -r %s: the longest gap is the step to speed up or remove", commandLine(p.slowest))
}

func commandLine(im *model.Image) string {
	line := strings.Join(append([]string{im.Name}, im.Args...), " ")
	if n := im.Hidden; n > 0 {
		line += fmt.Sprintf(" with its %s ([probe] arguments = \"all\" shows them)", hidden(n))
	}
	return line
}

// short is more than a run of iptables computes for a table of 1,000 rules.
const short = 50 * time.Millisecond

// longTable continues the remedy for runs of iptables that compute, because each reads a long table.
func (p *program) longTable() string {
	each := p.computed / time.Duration(max(1, p.runs))
	if each < short || !isIPTables(p.name) {
		return ""
	}
	return fmt.Sprintf("; or run kube-proxy in mode nftables or ipvs, which keeps the table short: each run needed %s of CPU "+
		"time to read it", text.Round(each))
}

func isIPTables(command string) bool {
	return strings.HasPrefix(command, "iptables") || strings.HasPrefix(command, "ip6tables")
}

func (p *program) caller() string {
	switch most := p.by[0]; {
	case most.connection != nil:
		return peerName(most.connection)
	case most.agent != "":
		return most.agent
	default:
		return most.plugin
	}
}

func hidden(n int) string {
	if n == 1 {
		return "hidden argument"
	}
	return fmt.Sprintf("%d hidden arguments", n)
}

// resolver returns the run of iptables that lists rules with names of addresses and waits half its time, or nil.
func resolver(run *model.Image) (found *model.Image) {
	run.Walk(func(im *model.Image) {
		lists, numeric := false, false
		for _, arg := range im.Args {
			short := strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--")
			lists = lists || arg == "--list" || short && strings.Contains(arg, "L")
			numeric = numeric || arg == "--numeric" || short && strings.Contains(arg, "n")
		}
		if isIPTables(im.Name) && lists && !numeric && im.CPU+im.RunDelay < (im.End-im.Start)/2 {
			found = im
		}
	})
	return found
}

// powerShell: each start takes one or two seconds.
func powerShell(e *evidence) *finding {
	for _, p := range e.programs() {
		if isPowerShell(p.name) || isPowerShell(p.inner) {
			return &finding{Verdict: Verdict{
				Cause: CausePowerShell, Says: p.String() + e.unconfirmed(p), Remedy: CausePowerShell.remedy(),
			}.beside(p.by[0].plugin), time: p.time, kind: Commands, candidate: p.candidate}
		}
	}
	return nil
}

// retriedCommand: a plugin slept after each failure of a command.
func retriedCommand(e *evidence) (f *finding) {
	for i := range e.spans {
		s := &e.spans[i]
		if s.agent != nil || s.candidate {
			continue
		}
		last, all := map[string]*model.Image{}, map[string]*pauses{}
		for _, im := range s.image.Children {
			if im.Run != nil || im.Hidden > 0 {
				continue
			}
			key := im.Name + "\x00" + strings.Join(im.Args, "\x00")
			if failed := last[key]; failed != nil && failed.Code != 0 {
				if all[key] == nil {
					all[key] = &pauses{}
				}
				if d := e.napped(i, failed.End, im.Start); d >= pause {
					all[key].add(failed, d)
				}
			}
			last[key] = im
		}
		for _, key := range slices.Sorted(maps.Keys(all)) {
			p := all[key]
			if d := e.napped(i, last[key].End, s.end); p.n > 1 && last[key].Code != 0 && d >= pause {
				p.add(last[key], min(p.time/time.Duration(p.n), d))
			}
			if p.n > 1 && (f == nil || p.time > f.time) {
				f = &finding{Verdict: p.verdict(s), time: p.time, kind: Sleep}
			}
		}
	}
	return f
}

func (p *pauses) verdict(s *span) Verdict {
	return Verdict{
		Cause: CauseCommand,
		Says: fmt.Sprintf("%s exited with %d%s, and plugin %s ran it again (%s)",
			p.last.Name, p.last.Code, because(p.last), s.plugin, p),
		Remedy: fmt.Sprintf("run %s by hand in the same network namespace, and fix what it reports: plugin %s sleeps and "+
			"tries again because it fails", commandLine(p.last), s.plugin),
	}
}

// napped includes the command sleep.
func (e *evidence) napped(at int, start, end int64) time.Duration {
	sum := e.sleptBetween(at, start, end)
	for i := range e.spans {
		if s := &e.spans[i]; s.command() && s.image.Name == "sleep" && s.plugin == e.spans[at].plugin {
			sum += time.Duration(max(0, min(s.own, s.end-start, end-s.start)))
		}
	}
	return sum
}

const (
	// quantum is how long iptables before 1.8.8 sleeps between attempts to lock (iptables(8), --wait-interval).
	quantum = time.Second
	// resource is RESOURCE_PROBLEM (include/xtables.h): lock taken (legacy), or refused by the kernel (nft).
	resource = 4
	// pause is the shortest delay before a retry.
	pause = 100 * time.Millisecond
)

func ranIPTables(im *model.Image) bool {
	return im.Run == nil && (isIPTables(im.Name) || strings.HasPrefix(im.Name, "xtables"))
}

// iptablesRetry: iptables found its lock taken and slept a second, or failed and was run again.
func iptablesRetry(e *evidence) *finding {
	slept, steps := e.iptablesSlept()
	locked, refused := e.iptablesAgain()
	v := Verdict{
		Cause:  CauseRetry,
		Remedy: CauseRetry.remedy(),
		Report: "istio/istio#51739",
	}
	switch max(slept, locked.time, refused.time) {
	case 0:
		return nil
	case slept:
		v.Says = fmt.Sprintf("iptables slept %d times for %s because another process held its lock", steps, quantum)
		return &finding{Verdict: v, time: slept, kind: Commands}
	case locked.time:
		v.Says = fmt.Sprintf("iptables exited with %d (lock held) and ran again (%s)", resource, locked)
		return &finding{Verdict: v, time: locked.time, kind: Sleep}
	}
	v.Says = fmt.Sprintf("%s exited with %d%s, and ran again (%s)",
		refused.last.Name, resource, because(refused.last), refused)
	v.Remedy = fmt.Sprintf("run %s by hand in the same network namespace: nft has no lock, so the kernel refused the rule "+
		"(a missing module, chain or option)", refused.last.Name)
	v.Report = "microsoft/WSL#11884"
	return &finding{Verdict: v, time: refused.time, kind: Sleep}
}

// iptablesSlept sums iptables' own sleeps. Timers are never early and rarely late by a third.
func (e *evidence) iptablesSlept() (sum time.Duration, steps int) {
	for i := range e.spans {
		s := &e.spans[i]
		if !ranIPTables(s.image) || s.candidate {
			continue
		}
		var all time.Duration
		for f, w := range model.Each[*model.Wait](s.image.Facts) {
			d, polls := time.Duration(f.When.End-f.When.Start), w.Name == "poll" || w.Name == "ppoll" // of a socket, as for DNS
			if w.Kind == event.WaitSleep && !polls && d >= quantum && d < quantum*4/3 {
				all += d
				steps++
			}
		}
		sum += min(all, time.Duration(s.own)) // the rest belongs to the lock it waited for
	}
	return sum, steps
}

type pauses struct {
	time time.Duration
	n    int
	last *model.Image
}

func (p *pauses) add(failed *model.Image, d time.Duration) {
	p.time += d
	p.n++
	p.last = failed
}

func (p pauses) String() string {
	return fmt.Sprintf("%s of about %s", text.Count(p.n, "wait"), text.Round(p.time/time.Duration(p.n)))
}

// iptablesAgain sums pauses after exit code resource: locked by a lock, refused by nft, which has none.
func (e *evidence) iptablesAgain() (locked, refused pauses) {
	for i := range e.spans {
		if e.spans[i].agent != nil {
			continue // an agent's runs may be for several calls
		}
		var failed *model.Image
		for _, child := range e.spans[i].image.Children {
			if !ranIPTables(child) {
				continue
			}
			if failed != nil {
				switch d := time.Duration(child.Start - failed.End); {
				case d < pause:
				case isNFT(failed):
					refused.add(failed, d)
				default:
					locked.add(failed, d)
				}
			}
			if failed = nil; child.Code == resource {
				failed = child
			}
		}
	}
	locked.time, refused.time = min(locked.time, e.Took), min(refused.time, e.Took)
	return locked, refused
}

func isNFT(im *model.Image) bool {
	if strings.Contains(im.Name, "-nft") {
		return true
	}
	for _, r := range model.Each[*model.Request](im.Facts) {
		if r.Protocol == "nf_tables" || r.Protocol == "nft_compat" {
			return true
		}
	}
	return false
}
