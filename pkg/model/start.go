package model

import "github.com/cniscope/cniscope/pkg/event"

// Start is a sandbox's start.
type Start struct {
	Flight
	// Network is the last plugin's end.
	From, Network, To int64
	Steps             []Step
	Reported          int64 // by NRI
	Sandbox           *event.Sandbox
	Dropped           bool // not exported
}

// Step is a program and its end.
type Step struct {
	event.Step
	End int64
}

// Failed reports whether it failed.
func (s *Step) Failed() bool { return s.Code != 0 || s.Signal != "" }

// Below lists what it ran.
func (s *Start) Below(of *Step) (all []*Step) {
	for i := range s.Steps {
		if s.Steps[i].Parent == of.Process {
			all = append(all, &s.Steps[i])
		}
	}
	return all
}
