package judge

import (
	"fmt"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/model"
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

// hostLocalScan: host-local opens a file for every taken address, its only long computation. Waits for its lock, disk
// or a CPU are no evidence.
func hostLocalScan(e *evidence) *finding {
	f := &finding{Verdict: Verdict{
		Cause: CauseScan, Says: "host-local read one file for each allocated address",
		Remedy: CauseScan.remedy(),
		Report: "Azure/azure-container-networking#2817",
	}, kind: Plugins}
	var read time.Duration
	for i := range e.Parts {
		p := &e.Parts[i]
		reads := p.Kind == SystemCalls && p.In == "host-local" && slices.Contains([]string{"openat", "getdents64", "newfstatat", "statx"}, p.Name)
		switch {
		case reads:
			read += p.Time
		case p.Kind == Plugins && p.Name == "host-local":
			f.time += e.computed(p)
		}
	}
	if read < f.time { // otherwise few calls waited for a disk
		f.time += read
	}
	return f
}

// computed is a plugin's time on a CPU: all, unless it waited longer for one.
func (e *evidence) computed(p *Part) time.Duration {
	var on, waited int64
	for i := range e.spans {
		if im := e.spans[i].image; im.Run != nil && im.Run.Plugin == p.Name {
			on, waited = on+im.CPU, waited+im.RunDelay
		}
	}
	if waited <= on {
		return p.Time
	}
	return min(p.Time, time.Duration(on))
}

// leakedChild: a plugin's caller reads its standard output until all processes close it, here a child left behind.
func leakedChild(e *evidence) (worst *finding) {
	look := func(runs []*model.Image, end int64, kind PartKind, waiter string) {
		for i, run := range runs {
			if run.Run == nil || !run.Ended {
				continue
			}
			next := end
			if i+1 < len(runs) {
				next = runs[i+1].Start
			}
			if f := leaked(run, next, waiter); f != nil && (worst == nil || f.time > worst.time) {
				f.kind = kind
				worst = f
			}
		}
	}
	for _, run := range e.call.Runs {
		run.Walk(func(im *model.Image) {
			if im.Run != nil && im.Ended {
				look(im.Children, im.End, Waiting, "plugin "+im.Run.Plugin)
			}
		})
	}
	look(e.call.Runs, e.call.End, Between, "the runtime")
	return worst
}

func leaked(run *model.Image, next int64, waiter string) *finding {
	child := outlived(run)
	if child == nil || !child.Ended || child.Unseen {
		return nil
	}
	gap, late := time.Duration(next-run.End), time.Duration(next-child.End)
	// The tolerance is for starting a program.
	if gap <= 0 || late < 0 || late > gap/10+20*time.Millisecond {
		return nil
	}
	return &finding{Verdict: Verdict{
		Cause: CauseLeakedChild,
		Says: fmt.Sprintf("%s waited for %s (pid %d) to close the standard output of plugin %s, which had exited",
			waiter, child.Name, child.PID, run.Run.Plugin),
		Remedy: fmt.Sprintf("change plugin %s so that it redirects the standard output of %s (>/dev/null) or waits until "+
			"%[2]s exits", run.Run.Plugin, child.Name),
	}, time: gap}
}

func outlived(run *model.Image) (last *model.Image) {
	var look func(*model.Image)
	look = func(im *model.Image) {
		for _, child := range im.Children {
			if child.Outlived && (last == nil || child.End > last.End) {
				last = child
			}
			look(child)
		}
	}
	look(run)
	return last
}
