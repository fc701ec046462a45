package judge

import (
	"path"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// Thresholds are durations that count as slow if exceeded; 0 disables.
type Thresholds struct {
	// Command applies if no rule matches.
	Command, Call time.Duration
	Agent, Lock   time.Duration
	// Rules are tried before Command; the first match counts.
	Rules []Rule
	// Floor is the duration below which nothing is slower than usual.
	Baseline bool
	Floor    time.Duration
}

// Rule is the threshold of some commands.
type Rule struct {
	// Pattern is a glob (path.Match) on the command's name or base name, ignoring case.
	Pattern   string
	Threshold time.Duration
}

func (t Thresholds) mark(j *Judgement, c *Call, call *model.Call, run *model.Image) {
	run.Walk(func(im *model.Image) {
		if limit := t.threshold(im); limit > 0 && time.Duration(im.End-im.Start) > limit {
			j.Slow[im] = limit
			c.SlowCommands++
		}
		t.markFacts(j, c, call, im)
	})
}

func (t Thresholds) markFacts(j *Judgement, c *Call, call *model.Call, im *model.Image) {
	beyond := func(i model.Interval, limit time.Duration) bool {
		return limit > 0 && time.Duration(min(i.End, call.End)-i.Start) > limit
	}
	for f, made := range model.Each[*model.Connection](im.Facts) {
		at := f.When
		if made.Exchange != nil {
			var asks bool
			if at, asks = asksFor(made, f.When); !asks {
				continue // a subscription
			}
		}
		if beyond(at, t.Agent) {
			j.SlowAgents[made] = t.Agent
			c.SlowAgents++
		}
		if made.Work != nil {
			t.markFacts(j, c, call, made.Work.Own)
		}
	}
	for f, w := range model.Each[*model.Wait](im.Facts) {
		if (w.Kind == event.WaitLock || w.Kind == event.WaitMutex) && beyond(f.When, t.Lock) {
			j.SlowLocks[w] = t.Lock
			c.SlowLocks++
		}
	}
}

func (t Thresholds) threshold(im *model.Image) time.Duration {
	if im.Run != nil {
		return 0
	}
	for _, rule := range t.Rules {
		if rule.matches(im.Name) || rule.matches(im.File[strings.LastIndexAny(im.File, `/\`)+1:]) {
			return rule.Threshold
		}
	}
	return t.Command
}

func (r Rule) matches(name string) bool {
	ok, err := path.Match(strings.ToLower(r.Pattern), strings.ToLower(name))
	return ok && err == nil
}
