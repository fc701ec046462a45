package judge

import (
	"fmt"
	"time"

	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// The causes of polledFile.
const (
	CauseLockFile    Cause = "lock_file"
	CauseMissingFile Cause = "missing_file"
)

// polledPart is the time between two tries, in which the plugin slept.
func polledPart(s *span, what model.What) Part {
	m := what.(*model.Missing)
	return Part{Kind: Sleep, Name: s.waiter(), Detail: fmt.Sprintf("polling for %s (%s)", m.Path, m.Error)}
}

// missedPath is a path that a plugin or an agent tried again and again.
type missedPath struct {
	*model.Missing
	when model.Interval
	by   *span
	time time.Duration // charged to it
}

// polledFile: a plugin, or an agent that it called, polled for a file that is missing, or for a lock file to go away.
func polledFile(e *evidence) *finding {
	var most *missedPath
	for i := range e.spans {
		s := &e.spans[i]
		for f, m := range model.Each[*model.Missing](s.image.Facts) {
			if p := (&missedPath{m, f.When, s, e.polling(i, f)}); most == nil || p.time > most.time {
				most = p
			}
		}
	}
	if most == nil {
		return nil
	}
	return &finding{
		Verdict: most.verdict(e.call), time: most.time, kind: Sleep, candidate: most.by.candidate, agent: most.by.agent,
		heldUp: most.by.image.End-most.when.End < 2*most.period(), known: true,
	}
}

// polling is the time that a plugin slept from the first to the last try, in its own sleeps or by sleep commands of a
// script. If that is most of its sleep, all of it counts: tries are only seen some time after the plugin's start.
func (e *evidence) polling(at int, f *model.Fact) (sum time.Duration) {
	var slept time.Duration
	for i := range e.waits {
		if w := &e.waits[i]; w.part.Kind == Sleep && w.span == at {
			slept += time.Duration(w.own)
			if w.what == f.What {
				sum += time.Duration(w.own)
			}
		}
	}
	for i := range e.spans {
		if s := &e.spans[i]; s.command() && s.image.Name == "sleep" && s.plugin == e.spans[at].plugin {
			slept += time.Duration(s.own)
			sum += min(time.Duration(s.own), time.Duration(max(0, min(s.end, f.When.End)-max(s.start, f.When.Start))))
		}
	}
	if sum > slept/2 {
		return slept
	}
	return sum
}

// period is the mean time from one try to the next.
func (p *missedPath) period() int64 { return p.when.Took() / int64(max(1, p.Count-1)) }

func (p *missedPath) verdict(call *model.Call) Verdict {
	who := "plugin " + p.by.plugin
	if p.by.agent != nil {
		who = nameOf(p.by.agent)
	}
	tries := fmt.Sprintf("%s failed %d times (%s), each after about %s", p.Name, p.Count, p.Error, text.Round(time.Duration(p.period())))
	if p.Error != "EEXIST" {
		return Verdict{
			Cause: CauseMissingFile, Says: fmt.Sprintf("until file %s is there, for which %s polls: %s", p.Path, who, tries),
			Remedy: fmt.Sprintf("start the program that writes %s, and read its log if it runs; correct the path in the configuration of %s if another file is meant", p.Path, who),
		}
	}
	v := Verdict{
		Cause: CauseLockFile, Says: fmt.Sprintf("waiting for lock file %s, for which %s polls: %s", p.Path, who, tries),
		Remedy: fmt.Sprintf("run fuser -v %s: kill the process that it names if that hangs; run rm %[1]s if it names none", p.Path),
		Report: "Azure/azure-container-networking#464",
	}
	l := call.LockFiles[p.Path]
	switch {
	case l == nil || l.Maker == nil:
	case l.Gone:
		v.Says += fmt.Sprintf("; pid %d, which wrote it, is gone", l.Maker.PID)
		v.Remedy = fmt.Sprintf("run rm %s: the process that made it (pid %d) is gone", p.Path, l.Maker.PID)
	default:
		v.Says += fmt.Sprintf("; %s (pid %d) wrote it", l.Maker.Name, l.Maker.PID)
		v.Remedy = fmt.Sprintf("kill %s (pid %d) if it hangs, else shorten what it does while it has %s", l.Maker.Name, l.Maker.PID, p.Path)
	}
	return v
}
