package node

import (
	"context"

	"github.com/cniscope/cniscope/pkg/firstconn"
	"github.com/cniscope/cniscope/pkg/probe/drops"
	"github.com/cniscope/cniscope/pkg/probe/trust"
)

func (n *observer) dropsOf(l *life, off bool) firstconn.Drops {
	_, net := trust.NewNode(nil, false).Namespaces()
	w, err := drops.Open(net)
	if err == nil && off {
		err = w.Switch(off)
	}
	if err != nil {
		n.log.Warn("feature unavailable", "feature", "who drops packets", "reason", err)
		return nil
	}
	l.at(stopSources, "drops", func(context.Context) { w.Close() })
	n.drops = w
	return w
}
