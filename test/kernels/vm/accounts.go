//go:build linux

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

// cpuTime allows half: time before the exec or after the tracepoint at exit.
func cpuTime(s *scene, root *event.Exec) error {
	u := s.calls["busy"].usage
	got, want := s.exit(root.Process).Used.CPU, u.Utime.Nano()+u.Stime.Nano()
	if got < want/2 || got > want*3/2 {
		return fmt.Errorf("%v, want %v", time.Duration(got), time.Duration(want))
	}
	return nil
}

// runDelay must be present: more busy threads than CPUs.
func runDelay(s *scene, root *event.Exec) error {
	if s.exit(root.Process).Used.RunDelay <= 0 {
		return errors.New("none, though CPUs were short")
	}
	return nil
}

func started(s *scene, root *event.Exec) error {
	if c := s.calls["tree"]; root.Started < c.began || root.Started > c.over {
		return fmt.Errorf("%d is not from %d to %d", root.Started, c.began, c.over)
	}
	return nil
}

func pidNamespaces(s *scene, root *event.Exec) error {
	if want := s.calls["inside"].pid; int(root.PID) != want {
		return fmt.Errorf("%d, want the number of our namespace, %d", root.PID, want)
	}
	return nil
}

func underWay(s *scene, root *event.Exec) error {
	if x := s.exit(root.Process); !root.InFlight || int(root.PID) != s.hungPID || x.Code != 4 {
		return fmt.Errorf("%+v, its end %+v", *root, *x)
	}
	if s.exec(func(x *event.Exec) bool { return x.InFlight && x != root }) != nil {
		return errors.New("more was found than there was")
	}
	return nil
}
