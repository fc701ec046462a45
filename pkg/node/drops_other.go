//go:build !linux

package node

import "github.com/cniscope/cniscope/pkg/firstconn"

func (*observer) dropsOf(*life, bool) firstconn.Drops { return nil }
