//go:build !linux

package node

import "github.com/cniscope/cniscope/pkg/nri"

type nriPlugins struct{}

func newNRIPlugins(string) nriPlugins { return nriPlugins{} }

func (nriPlugins) list(int) []nri.Other { return nil }
