package judge

import (
	"fmt"
	"time"

	"github.com/cniscope/cniscope/pkg/model"
)

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
