package proctracker

import (
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/redact"
)

// Running is a process that is followed, and has not ended.
type Running struct {
	Process event.Process
	PID     uint32
	// Known is what its run's plugins were told, which may not leave.
	Known *redact.Call
}

// Running lists those that began before then.
func (t *Tracker) Running(before int64) (all []Running) {
	for p := range t.follows {
		if p.ended == 0 && p.began < before {
			all = append(all, Running{p.key(), p.pid, p.of.known})
		}
	}
	return all
}

// Key is what the process that has this number is called; empty if nobody told of it.
func (t *Tracker) Key(pid uint32) event.Process {
	if p := t.processes[pid]; p != nil {
		return p.key()
	}
	return ""
}

// Tell tells in its turn what a followed process did until at.
func (t *Tracker) Tell(at int64, pid uint32, body event.Body) {
	if p := t.processes[pid]; p != nil && p.of != nil {
		t.put(&item{time: at, process: p, body: body})
	}
}

// Lose tells in its turn that so many things that a followed process did are not known, for that reason.
func (t *Tracker) Lose(at int64, pid uint32, reason string, n uint64) {
	if p := t.processes[pid]; p != nil && p.of != nil {
		t.lose(at, reason, n, p.of)
	}
}
