package judge

import (
	"path"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/timeline"
)

// slow finds what in a run of a call took too long.
func (o Options) slow(j *Judgement, c *Call, call *timeline.Call, run *timeline.Image) {
	run.Walk(func(im *timeline.Image) {
		if limit := o.threshold(im); limit > 0 && time.Duration(im.End-im.Start) > limit {
			j.Slow[im] = limit
			c.SlowCommands++
		}
		o.inside(j, c, call, im)
	})
}

// inside is slow for what an image called and waited for. Nobody waited for what went on
// after the call.
func (o Options) inside(j *Judgement, c *Call, call *timeline.Call, im *timeline.Image) {
	beyond := func(i timeline.Interval, limit time.Duration) bool {
		return limit > 0 && time.Duration(min(i.End, call.End)-i.Start) > limit
	}
	for f, made := range timeline.Each[*timeline.Connection](im.Facts) {
		if beyond(f.When, o.Agent) {
			j.SlowAgents[made] = o.Agent
			c.SlowAgents++
		}
		if made.Work != nil {
			o.inside(j, c, call, made.Work.Own)
		}
	}
	for f, w := range timeline.Each[*timeline.Wait](im.Facts) {
		if (w.Kind == event.WaitLock || w.Kind == event.WaitMutex) && beyond(f.When, o.Lock) {
			j.SlowLocks[w] = o.Lock
			c.SlowLocks++
		}
	}
}

// threshold returns how long im may take; 0 where it is no command or may take for
// ever.
func (o Options) threshold(im *timeline.Image) time.Duration {
	if im.Run != nil {
		return 0
	}
	for _, rule := range o.Rules {
		if rule.matches(im.Name) || rule.matches(im.File[strings.LastIndexAny(im.File, `/\`)+1:]) {
			return rule.Threshold
		}
	}
	return o.Command
}

func (r Rule) matches(name string) bool {
	ok, err := path.Match(strings.ToLower(r.Pattern), strings.ToLower(name))
	return ok && err == nil
}
