//go:build !linux

package node

import "github.com/cniscope/cniscope/pkg/event"

func nriPlugins(string) []event.Actor { return nil }
