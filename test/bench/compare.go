//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// measureCompare gives each way of observing a turn per round, in random order.
func measureCompare(ctx context.Context, n *node) (rows []row, err error) {
	arms := n.settings.chosen(n.arms())
	if len(n.settings.ways) > 0 && len(arms) == len(unobserved()) {
		return nil, fmt.Errorf("BENCH_WAYS names none of commands, auto, always, bpftrace, ig, strace: %s", strings.Join(n.settings.ways, ","))
	}
	if _, err := n.pod(ctx); err != nil { // warm up
		return nil, err
	}
	random := rand.New(rand.NewPCG(1, 2))
	each := min(n.settings.turn, max(1, n.settings.compared/len(arms)))
	rounds := max(1, n.settings.compared/len(arms)/each)
	for i := range rounds {
		for _, a := range random.Perm(len(arms)) {
			say("round %d of %d: %s", i+1, rounds, arms[a].name)
			if err := n.turn(ctx, arms[a], each); err != nil {
				return nil, fmt.Errorf("%s: %w", arms[a].name, err)
			}
		}
	}
	return compared(arms), nil
}

// unobserved returns two arms without observation, whose difference is noise.
func unobserved() []*arm { return []*arm{{name: "nothing"}, {name: "nothing, once more"}} }

// arms returns all ways of observing, and the unobserved arms.
func (n *node) arms() []*arm {
	arms := unobserved()
	for _, detail := range details {
		a := &arm{name: "cniscope, detail " + detail, shows: "spans: pod, plugin, command, what it waited for and why", unit: "spans"}
		if detail == "commands" {
			a.shows = "spans: pod, plugin, command"
		}
		a.start = func(ctx context.Context) (watcher, error) {
			observer, err := n.observe(ctx, probeOptions(detail))
			if err != nil {
				return nil, err
			}
			return &exporting{Scope: observer, sink: n.sink, before: n.sink.spans.Load()}, nil
		}
		arms = append(arms, a)
	}
	return append(arms,
		&arm{name: "bpftrace execsnoop", shows: "execs of the machine; no pod, no plugin that they belong to", unit: "lines", start: n.execsnoop},
		&arm{name: "ig trace exec", shows: "execs of the machine; the pod of what runs in one, which no plugin does", unit: "lines", start: n.inspektorGadget},
		&arm{name: "strace -f of containerd", shows: "system calls of containerd and what it starts; no pod, no plugin that they belong to", unit: "lines", start: n.strace})
}

func (s settings) chosen(arms []*arm) []*arm {
	if len(s.ways) == 0 {
		return arms
	}
	return slices.DeleteFunc(arms, func(a *arm) bool {
		named := func(way string) bool { return strings.HasSuffix(a.name, way) || strings.HasPrefix(a.name, way) }
		return a.start != nil && !slices.ContainsFunc(s.ways, named)
	})
}

// figures are the figures of each observing arm.
var figures = []func(a *arm) row{(*arm).cpuRow, (*arm).memoryRow, (*arm).toldRow}

// compared returns the table, figure by figure.
func compared(arms []*arm) (rows []row) {
	nothing := arms[0]
	for _, a := range arms {
		rows = append(rows, a.podRow())
	}
	for _, a := range arms[1:] {
		rows = append(rows, a.ratioRow(nothing))
	}
	for _, a := range arms[1:] {
		rows = append(rows, a.rest.more(a.name+", at rest", nothing.rest, 0), a.after.more(a.name+", right after a pod", nothing.after, 0))
	}
	for _, figure := range figures {
		for _, a := range arms {
			if a.start != nil {
				rows = append(rows, figure(a))
			}
		}
	}
	return rows
}
