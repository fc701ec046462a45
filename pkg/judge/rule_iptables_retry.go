package judge

import (
	"fmt"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/text"
	"github.com/cniscope/cniscope/pkg/timeline"
)

const (
	// quantum is how long iptables before 1.8.8 sleeps until it asks for its lock again
	// (iptables(8), --wait-interval).
	quantum = time.Second
	// inUse is the exit code of an iptables that found its lock taken: RESOURCE_PROBLEM (include/xtables.h).
	inUse = 4
	// pause is how long whoever runs such an iptables again waits at least before that.
	pause = 100 * time.Millisecond
)

func isIptables(im *timeline.Image) bool {
	return im.Run == nil && (strings.HasPrefix(im.Name, "iptables") || strings.HasPrefix(im.Name, "ip6tables") || strings.HasPrefix(im.Name, "xtables"))
}

// iptablesRetry: iptables found its lock taken and slept a second, or gave up and was run again.
func iptablesRetry(e *evidence) *finding {
	slept, steps := e.iptablesSlept()
	rested, again := e.iptablesAgain()
	v := Verdict{
		Cause:  CauseRetry,
		Remedy: CauseRetry.remedy(),
		Report: "istio/istio#51739",
	}
	switch {
	case slept == 0 && rested == 0:
		return nil
	case slept >= rested:
		v.Says = fmt.Sprintf("in iptables, asleep in %d steps of %s because another one had its lock", steps, quantum)
		return &finding{Verdict: v, time: slept, kind: Commands}
	}
	v.Says = fmt.Sprintf("until iptables, which had given up on its lock (exit code %d), was run again (%d times, each after about %s)",
		inUse, again, text.Round(rested/time.Duration(again)))
	return &finding{Verdict: v, time: rested, kind: Sleep}
}

// iptablesSlept adds up the sleeps of iptables itself. Timers are never early and rarely late by a third.
func (e *evidence) iptablesSlept() (sum time.Duration, steps int) {
	for i := range e.spans {
		s := &e.spans[i]
		if !isIptables(s.image) || s.candidate {
			continue
		}
		var all time.Duration
		for f, w := range timeline.Each[*timeline.Wait](s.image.Facts) {
			if d := time.Duration(f.When.End - f.When.Start); w.Kind == event.WaitSleep && d >= quantum && d < quantum*4/3 {
				all += d
				steps++
			}
		}
		sum += min(all, time.Duration(s.own)) // the rest is said of the lock it waited for
	}
	return sum, steps
}

// iptablesAgain adds up the pauses between an iptables that gave up and the next one.
func (e *evidence) iptablesAgain() (sum time.Duration, again int) {
	for i := range e.spans {
		if e.spans[i].agent != nil {
			continue // what an agent runs one after another may be for several calls
		}
		var gaveUp *timeline.Image
		for _, child := range e.spans[i].image.Children {
			if !isIptables(child) {
				continue
			}
			if gaveUp != nil {
				if d := time.Duration(child.Start - gaveUp.End); d >= pause {
					sum += d
					again++
				}
			}
			if gaveUp = nil; child.Code == inUse {
				gaveUp = child
			}
		}
	}
	return min(sum, e.Took), again
}
