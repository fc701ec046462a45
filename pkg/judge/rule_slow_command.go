package judge

import (
	"fmt"
	"strings"
)

func slowCommand(e *evidence) *finding {
	all := e.programs()
	if len(all) == 0 {
		return nil
	}
	p := all[0]
	f := &finding{
		Verdict: Verdict{Cause: CauseCommand, Says: p.String(), Remedy: p.remedy()},
		time:    p.time, kind: Commands, candidate: p.candidate, agent: p.by[0].connection,
	}
	if most := p.by[0]; most.connection != nil || most.agent != "" {
		f.Report = "antrea-io/antrea#4859"
	}
	return f
}

func (p *program) remedy() string {
	if r := instead(p.name); r != "" {
		return r
	}
	switch "sleep" {
	case p.name:
		return fmt.Sprintf("remove the sleep from %s", p.caller())
	case p.inner:
		return fmt.Sprintf("remove the sleep from %s", p.name)
	}
	line := strings.Join(append([]string{"strace -f -r", p.name}, p.slowest.Args...), " ")
	if n := p.slowest.Hidden; n > 0 {
		line += fmt.Sprintf(" with its %s ([probe] arguments = \"all\" shows them)", hidden(n))
	}
	return fmt.Sprintf("run %s: the longest gap is the step to speed up or remove", line)
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
