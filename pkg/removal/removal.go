// Package removal finds, in /proc, what the removal of a sandbox waits for.
package removal

import (
	"strconv"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

// Step is one that hangs.
type Step struct {
	Sandbox *event.Sandbox // or nil
	Name    string
	Runs    string
	PID     int
	Age     time.Duration
	Running time.Duration // age of PID
	State   string
	Waits   string
	Cause   judge.Cause
	does    string
	undated bool // Age is unknown
	key     string

	container bool // of one
}

// Says returns the verdict.
func (s Step) Says() string {
	says := text.Round(s.Age).String() + " so far: " + s.does
	switch {
	case s.stopped():
		return says
	case s.Waits != "":
		return says + " waits in " + s.Waits
	case s.State == "D":
		return says + " waits in the kernel"
	}
	return says + " runs"
}

func (s Step) stopped() bool { return s.Cause == judge.CauseShim && s.undated }

// Command returns the request.
func (s Step) Command() string {
	switch {
	case s.Sandbox == nil && (s.Name == "openat" || s.Name == "mount"):
		return model.RunPodSandbox
	case s.container:
		return model.StopContainer
	}
	return model.StopPodSandbox
}

// Key identifies a step.
func (s Step) Key() string { return strconv.Itoa(s.PID) + " " + s.key }

// Watch is safe for concurrent use.
type Watch struct {
	mu       sync.Mutex
	since    map[string]time.Time
	memory   *procfs.Memory
	patience procfs.Patience
}

// NewWatch allows a look five seconds.
func NewWatch() *Watch {
	return &Watch{memory: procfs.NewMemory(), patience: procfs.Patience{Each: 5 * time.Second, Most: 2}}
}

const least = time.Second

// Look lists steps of at least a second. runtime is a PID, or 0.
func (w *Watch) Look(known []*event.Sandbox, runtime int) []Step {
	if len(known) == 0 || runtime == 0 {
		return nil
	}
	found, _ := procfs.Within(&w.patience, func() ([]Step, error) {
		found, wait := w.age(once(known, runtime, w.memory))
		if wait {
			time.Sleep(least)
			found, _ = w.age(once(known, runtime, w.memory))
		}
		return found, nil
	})
	return found
}

func (w *Watch) age(steps []Step) (found []Step, wait bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, seen := time.Now(), map[string]time.Time{}
	for _, s := range steps {
		if s.undated {
			key := s.Key()
			since, known := w.since[key]
			if !known {
				since, wait = now, true
			}
			seen[key], s.Age = since, now.Sub(since)
		}
		if s.Age >= least {
			found = append(found, s)
		}
	}
	w.since = seen
	return found, wait
}
