package proctracker

import (
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/redact"
)

// Running is a followed process that has not ended.
type Running struct {
	Process event.Process
	PID     uint32
	// Known is the redaction of its run.
	Known *redact.Call
}

// Running lists those that began before that time.
func (t *Tracker) Running(before int64) (all []Running) {
	for p := range t.follows {
		if p.ended == 0 && p.began < before {
			all = append(all, Running{p.key(), p.pid, p.of.known})
		}
	}
	return all
}

// Key returns the key of a known process; else empty.
func (t *Tracker) Key(pid uint32) event.Process {
	if p := t.processes[pid]; p != nil {
		return p.key()
	}
	return ""
}

// Tell queues an activity of a followed process.
func (t *Tracker) Tell(at int64, pid uint32, body event.Body) {
	if p := t.processes[pid]; p != nil && p.of != nil {
		t.put(&item{time: at, process: p, body: body})
	}
}

// Lose queues a loss of n activities of a followed process.
func (t *Tracker) Lose(at int64, pid uint32, reason string, n uint64) {
	if p := t.processes[pid]; p != nil && p.of != nil {
		t.lose(at, reason, n, p.of)
	}
}
