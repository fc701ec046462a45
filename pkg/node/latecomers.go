package node

import (
	"log/slog"
	"time"

	"github.com/cniscope/cniscope/pkg/firstconn"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/text"
)

type latecomers struct {
	log   *slog.Logger
	node  string
	looks *firstconn.Source
}

func (l latecomers) take(result pipeline.Result) {
	switch r := result.(type) {
	case *pipeline.Wanted:
		l.looks.Want(r.ContainerID, r.Want)
	case *pipeline.Awaited:
		l.looks.Await(r.Connected)
	case *pipeline.Connected:
		l.looks.Connected(r.NetNS)
		if r.Late {
			l.tell(r)
		}
	}
}

func (l latecomers) tell(c *pipeline.Connected) {
	fields := []any{
		"pod", c.Pod.Namespace + "/" + c.Pod.Name, "node", l.node, "after", text.Round(time.Duration(c.At - c.End)),
		"local", c.Local, "remote", c.Remote, traced(c.ID),
	}
	if v := c.Verdict; v != nil {
		fields = append(fields, "verdict", v.Says, "cause", v.Cause)
		if v.Remedy != "" {
			fields = append(fields, "remedy", v.Remedy)
		}
	}
	if c.Never {
		l.log.Warn("a pod's first connection did not come", fields...)
		return
	}
	l.log.Warn("a pod's first connection came late", fields...)
}
