package node

import (
	"encoding/hex"
	"log/slog"
	"time"

	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/text"
)

type latecomers struct {
	log   *slog.Logger
	node  string
	after time.Duration // 0: off
}

func (l latecomers) take(r pipeline.Result) {
	c, is := r.(*pipeline.Connected)
	if !is {
		return
	}
	after := time.Duration(c.At - c.End)
	if l.after == 0 || after < l.after {
		return
	}
	fields := []any{
		"pod", c.Pod.Namespace + "/" + c.Pod.Name, "node", l.node, "after", text.Round(after),
		"local", c.Local, "remote", c.Remote, "trace_id", hex.EncodeToString(c.ID[:]),
	}
	if cause, says := triesOf(c.ContainerID).Why(); cause != "" {
		fields = append(fields, "verdict", says, "cause", cause)
	}
	l.log.Warn("a pod's first connection came late", fields...)
}
