package timeline

import (
	"time"

	"github.com/cniscope/cniscope/pkg/model"
)

const (
	// idleMax bounds the times in which threads of one image slept, or polled.
	idleMax = 4096
	// retry is how long after a lock was refused the next attempt still belongs to the
	// same wait: iptables asks again every second (iptables(8), --wait-interval).
	retry = 2 * time.Second
	// triesMax bounds the locks that one process is seen to retry.
	triesMax = 8
)

// try is a series of refused attempts to take a lock.
type try struct {
	wait   *model.Wait
	thread uint32
	when   model.Interval
	over   int64 // when the last attempt was refused
}

// suspect is a run that holds or held a lock. Once its operation is over, only its name is kept.
type suspect struct {
	op    *model.Operation
	call  *model.Call
	run   *model.Image
	blame *model.Blame
}

// known returns the run's name; nil as long as it may still change, since what is above
// its call may be told when that is over.
func (s *suspect) known(told bool) *model.Blame {
	if s.blame != nil || told && s.call.Trace.Parent == "" {
		return s.blame
	}
	return s.name()
}

func (s *suspect) name() *model.Blame {
	return &model.Blame{Call: s.op.KeyOf(s.call), Pod: s.op.Pod, Process: s.run.Process, Start: s.run.Start}
}
