//go:build linux

// Package soak has pods come and go while everything around them dies: docs/contributing/reliability.md.
//
// A soak is a series of rounds. What a round does follows from the seed and the round's number alone (schedule), so
// that one is replayed by naming both. Pods run over bridge, portmap, firewall and an agent, meanwhile faults begin
// and are undone (faults), and then all has to be as before (node). A witness that reads the kernel, the agent's
// journal and the runtime's answers say what was true; a collector of the soak's own what cniscope made of it
// (account). Each round is a line of a diary, from which a soak goes on and the report is computed.
package soak
