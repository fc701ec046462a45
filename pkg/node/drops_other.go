//go:build !linux

package node

import "github.com/cniscope/cniscope/pkg/firstconn"

func (*observer) dropsOf(*life) firstconn.Drops { return nil }
