package judge

import (
	"fmt"
	"time"

	"github.com/cniscope/cniscope/pkg/text"
)

func slowPlugin(e *evidence) *finding {
	_, most := e.of(Plugins)
	if most == nil {
		return nil
	}
	says := e.onCPU(most.Name)
	if most.Detail != "" {
		says += ", " + most.Detail
	}
	return &finding{Verdict: Verdict{
		Cause: CausePlugin, Says: says,
		Remedy: CausePlugin.remedy(),
	}, time: most.Time, kind: Plugins}
}

func (e *evidence) onCPU(plugin string) string {
	var cpu, delay time.Duration
	for i := range e.spans {
		if im := e.spans[i].image; im.Run != nil && im.Run.Plugin == plugin && !e.spans[i].candidate {
			cpu, delay = cpu+time.Duration(im.CPU), delay+time.Duration(im.RunDelay)
		}
	}
	switch {
	case cpu == 0:
		return "plugin " + plugin + " used a CPU, or waited for a CPU"
	case delay < cpu/10:
		return fmt.Sprintf("plugin %s used %s of CPU time", plugin, text.Round(cpu))
	}
	return fmt.Sprintf("plugin %s used %s of CPU time and waited %s for a CPU (sums over its threads)",
		plugin, text.Round(cpu), text.Round(delay))
}
