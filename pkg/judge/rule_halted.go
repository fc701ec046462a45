package judge

import "github.com/cniscope/cniscope/pkg/model"

// CauseHalted is the cause of haltedPlugin.
const CauseHalted Cause = "plugin_stopped"

func haltedPlugin(e *evidence) *finding {
	time, most := e.of(Halts)
	_, longest, _ := e.waited(func(w *wait) bool { return w.part.Kind == Halts })
	if most == nil || longest == nil {
		return nil
	}
	h, im := longest.what.(*model.Halt), e.image(longest)
	return &finding{Verdict: Verdict{
		Cause: CauseHalted, Says: most.String(), Remedy: goOn(im.PID, e.spans[longest.span].waiter(), h.State, h.By),
	}, time: time, kind: Halts, candidate: most.Doubtful(), heldUp: true}
}
