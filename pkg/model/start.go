package model

import "github.com/cniscope/cniscope/pkg/event"

// Start is a sandbox's start, from its network setup until NRI reports it, or its last program ends; or a late stop
// or removal (Request).
type Start struct {
	Flight
	Request  string
	Asked    int64  // by the runtime's span, or 0
	Mounted  int64  // network namespace, or 0
	From     int64  // of the setup
	Network  int64  // end of the last plugin
	To       int64  // the latest of Network, the programs and Reported
	Steps    []Step // by start
	Reported int64  // by NRI; 0 without
	Sandbox  *event.Sandbox
	Dropped  bool // not exported
}

// Requests to the runtime.
const (
	RunPodSandbox    = "RunPodSandbox"
	StopPodSandbox   = "StopPodSandbox"
	RemovePodSandbox = "RemovePodSandbox"
	StopContainer    = "StopContainer"
)

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
