package judge

import (
	"fmt"
	"time"
)

// hungry is the share of a call that its processes have to wait for a CPU before that is
// the cause.
const hungry = 0.4

// starved: the node has too much to do. Everything takes long then, and whatever took
// longest says nothing.
func starved(m *matter) *finding {
	var sum time.Duration
	for _, im := range m.images {
		// Threads wait side by side, so an image counts for no longer than it was there.
		sum += min(time.Duration(im.RunDelay), took(im))
	}
	if sum = min(sum, m.Took); float64(sum) < hungry*float64(m.Took) {
		return nil
	}
	// What others held up is not the CPU's fault.
	held, _ := m.of(Locks, KernelLocks, DAD, Agents, Sleep)
	if held > m.Took-sum {
		return nil
	}
	return &finding{Verdict{
		Cause: CauseStarved, Says: "waiting for a CPU",
		Remedy: "the node is overloaded: look at its load, at CPU limits of the runtime's cgroup, at pods that start all at once",
	}, m.Took} // more than any of the rest
}

// networkConfiguration: the kernel itself took that long to do what a plugin asked for.
func networkConfiguration(m *matter) *finding {
	time, most := m.of(Network, SystemCalls)
	if most == nil {
		return nil
	}
	return &finding{Verdict{
		Cause: CauseNetwork, Says: "in " + most.String(),
		Remedy: "the request and its interface are in the trace; a module that is loaded, or an interface of many members, takes the kernel long",
	}, time}
}

// runtimeGap: no plugin ran at all.
func runtimeGap(m *matter) *finding {
	time, most := m.of(Between)
	if most == nil {
		return nil
	}
	return &finding{Verdict{
		Cause: CauseRuntime, Says: most.String(),
		Remedy: "look at containerd's own spans and its log at that time",
	}, time}
}

// slowPlugin: a plugin computed.
func slowPlugin(m *matter) *finding {
	_, most := m.of(Plugins)
	if most == nil {
		return nil
	}
	return &finding{Verdict{
		Cause: CausePlugin, Says: fmt.Sprintf("on CPU, or waiting for one, in plugin %s", most.Name),
		Remedy: "a profile of the plugin tells more (perf record)",
	}, most.Time}
}

// unexplained: cniscope does not know, and says so.
func unexplained(m *matter) *finding {
	time, most := m.of(Unexplained)
	if most == nil {
		return nil
	}
	f := &finding{Verdict{Cause: CauseUnexplained, Says: most.String()}, time}
	if !m.call.Seen {
		f.Remedy = "[probe] detail = \"auto\" or \"always\" looks into plugins"
	}
	return f
}
