package proctracker

import (
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/redact"
)

// Running is followed and has not ended.
type Running struct {
	Process event.Process
	PID     uint32
	Known   *redact.Call
}

// Running lists processes that began before that time.
func (t *Tracker) Running(before int64) (all []Running) {
	for p := range t.follows {
		if p.ended == 0 && p.began < before {
			all = append(all, Running{p.key(), p.pid, p.of.known})
		}
	}
	return all
}

// Key returns a process's key; empty if unknown.
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

// Lose queues n lost activities.
func (t *Tracker) Lose(at int64, pid uint32, reason string, n uint64) {
	if p := t.processes[pid]; p != nil && p.of != nil {
		t.lose(at, reason, n, p.of)
	}
}
