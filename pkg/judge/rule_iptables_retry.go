package judge

import (
	"fmt"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	// quantum is how long iptables before 1.8.8 sleeps between attempts to lock (iptables(8), --wait-interval).
	quantum = time.Second
	// resource is RESOURCE_PROBLEM (include/xtables.h): lock taken (legacy), or refused by the kernel (nft).
	resource = 4
	// pause is the shortest delay before a retry.
	pause = 100 * time.Millisecond
)

func isIptables(im *model.Image) bool {
	return im.Run == nil && (strings.HasPrefix(im.Name, "iptables") || strings.HasPrefix(im.Name, "ip6tables") || strings.HasPrefix(im.Name, "xtables"))
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
		if !isIptables(s.image) || s.candidate {
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
	return fmt.Sprintf("%s of about %s", count(p.n, "wait"), text.Round(p.time/time.Duration(p.n)))
}

// iptablesAgain sums pauses after exit code resource: locked by a lock, refused by nft, which has none.
func (e *evidence) iptablesAgain() (locked, refused pauses) {
	for i := range e.spans {
		if e.spans[i].agent != nil {
			continue // an agent's runs may be for several calls
		}
		var failed *model.Image
		for _, child := range e.spans[i].image.Children {
			if !isIptables(child) {
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
