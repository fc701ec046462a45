package node

import (
	"context"
	"fmt"
	"os/user"
	"strconv"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/control"
)

func (n *node) serveReaders(l *life, o config.Options, h control.ReadHandlers) {
	if o.Control.ReadGroup == "" {
		return
	}
	group, err := groupID(o.Control.ReadGroup)
	if err != nil {
		n.log.Warn("read-only socket unavailable, only root can query", "option", "control.read_group", "reason", err)
		return
	}
	socket, err := control.ListenRead(o.ReadFolder(), group)
	if err != nil {
		n.log.Warn("read-only socket unavailable, only root can query", "option", "control.read_group", "reason", err)
		return
	}
	l.start("read-only socket", func(ctx context.Context) { control.ServeRead(ctx, socket, h, n.log) })
}

func groupID(group string) (int, error) {
	if id, err := strconv.ParseUint(group, 10, 31); err == nil {
		return int(id), nil
	}
	g, err := user.LookupGroup(group)
	if err != nil {
		return 0, fmt.Errorf("%w; groupadd --system %s makes it", err, group)
	}
	return strconv.Atoi(g.Gid)
}
