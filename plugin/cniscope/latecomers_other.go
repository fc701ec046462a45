//go:build !linux

package main

import "github.com/cniscope/cniscope/pkg/reach"

// triesOf finds nothing of which something could be said.
func triesOf(string) reach.Tries { return reach.Tries{Opened: 2} }
