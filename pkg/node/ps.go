package node

import (
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/model"
)

func underWay(flights []model.Flight) []control.Call {
	now := clock.Monotonic()
	calls := make([]control.Call, 0, len(flights))
	for _, f := range flights {
		c := control.Call{
			Namespace: f.Pod.Namespace, Pod: f.Pod.Name, ContainerID: f.ContainerID,
			Command: f.Command, IfName: f.IfName, Plugin: f.Plugin, Age: time.Duration(now - f.Start),
			Runs: f.Name, PID: f.PID, Running: time.Duration(now - f.Since), Polls: f.Polls,
		}
		if f.Asks != "" {
			c.Asks, c.Agent, c.Asking = f.Asks, f.Agent, time.Duration(now-f.Asked)
		}
		c.Now()
		calls = append(calls, c)
	}
	return calls
}
