//go:build linux

// Package soak runs pods while everything around them fails: docs/contributing/reliability.md.
//
// A soak is a series of rounds, each determined by the seed and its number (schedule), so that it can be replayed.
// Pods use bridge, portmap, firewall and an agent; faults begin and end (faults), then everything must be normal
// (node). A kernel witness, the agent's journal and the runtime's answers are the truth that a collector's spans are
// compared with (account). Each round is a line of a diary, from which a soak continues and the report is made.
package soak
