package judge

import (
	"fmt"
	"strings"
)

// slowCommand: one external command, or one again and again.
func slowCommand(e *evidence) *finding {
	all := e.programs()
	if len(all) == 0 {
		return nil
	}
	p := all[0]
	f := &finding{Verdict: Verdict{Cause: CauseCommand, Says: p.String(), Remedy: p.remedy()}, time: p.time, kind: Commands, candidate: p.doubtful(), agent: p.by}
	if p.by != nil {
		f.Report = "antrea-io/antrea#4859"
	}
	return f
}

// remedy says how to do without the program, or how to see what it is slow in.
func (p *program) remedy() string {
	if r := instead(p.name); r != "" {
		return r
	}
	switch "sleep" {
	case p.name:
		return fmt.Sprintf("take the sleep out of %s: all it does is wait", p.caller())
	case p.inner:
		return fmt.Sprintf("take the sleep out of %s: all it does is wait", p.name)
	}
	line := strings.Join(append([]string{"strace -f -r", p.name}, p.slowest.Args...), " ")
	if n := p.slowest.Hidden; n > 0 {
		line += fmt.Sprintf(" with its %s ([probe] arguments = \"all\" shows them)", hidden(n))
	}
	return fmt.Sprintf("run %s: the longest gap is the step to speed up, or to take out", line)
}

// caller is who ran it.
func (p *program) caller() string {
	if p.by != nil {
		return peerName(p.by)
	}
	return p.plugin
}

func hidden(n int) string {
	if n == 1 {
		return "hidden argument"
	}
	return fmt.Sprintf("%d hidden arguments", n)
}

// doubtful reports whether most of its time is that of candidates.
func (p *program) doubtful() bool { return p.candidate > p.time/2 }

// String says it as a person would: "in 2 runs of Get-NetAdapter > sleep, by agentd at /run/agent.sock while
// plugin antrea called it". That is all that is known: an agent may have run it for something else.
func (p *program) String() string {
	said := p.name
	if p.inner != "" {
		said += " > " + p.inner
	}
	if p.runs > 1 {
		said = fmt.Sprintf("%d runs of %s", p.runs, said)
	}
	switch {
	case p.by == nil:
		return fmt.Sprintf("in %s, by plugin %s", said, p.plugin)
	case p.via != "":
		return fmt.Sprintf("in %s, by %s, %s", said, peerName(p.by), p.via)
	}
	return fmt.Sprintf("in %s, by %s while plugin %s called it", said, Peer(p.by), p.plugin)
}
