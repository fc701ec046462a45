package main

import (
	"encoding/hex"
	"log/slog"
	"time"

	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/text"
)

// latecomers looks why a pod's first connection was late. The zero value looks for nobody.
type latecomers struct {
	after time.Duration // what counts as late; 0: nothing does
	looks chan struct{} // one for each look under way
}

// looksMax is how many pods are looked at at once; of more it is only said that they were late. A look reads the
// cgroup of every process of the node once.
const looksMax = 2

func newLatecomers(after time.Duration) latecomers {
	return latecomers{after: after, looks: make(chan struct{}, looksMax)}
}

// take reports a connection that came late. It does not keep its caller waiting: what the kernel counted is read
// beside it.
func (l latecomers) take(log *slog.Logger, node string, c *pipeline.Connected) {
	after := time.Duration(c.At - c.End)
	if l.after == 0 || after < l.after {
		return
	}
	say := func(more ...any) {
		log.Warn("a pod's first connection came late", append([]any{
			"pod", c.Pod.Namespace + "/" + c.Pod.Name, "node", node, "after", text.Round(after),
			"local", c.Local, "remote", c.Remote, "trace_id", hex.EncodeToString(c.ID[:]),
		}, more...)...)
	}
	select {
	case l.looks <- struct{}{}:
	default:
		say()
		return
	}
	id := c.ContainerID
	go func() {
		defer func() { <-l.looks }()
		if cause, says := triesOf(id).Why(); cause != "" {
			say("verdict", says, "cause", cause)
			return
		}
		say()
	}()
}
