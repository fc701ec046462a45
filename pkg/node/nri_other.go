//go:build !linux

package node

import "github.com/cniscope/cniscope/pkg/event"

type nriPlugins struct{}

func newNRIPlugins(string) nriPlugins { return nriPlugins{} }

func (nriPlugins) list() []event.Actor { return nil }
