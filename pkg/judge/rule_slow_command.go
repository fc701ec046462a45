package judge

import (
	"fmt"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

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
