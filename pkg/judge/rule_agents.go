package judge

import (
	"fmt"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// slowAgent: the time was lost behind a socket, and nothing that the agent ran there or
// asked for explains it.
func slowAgent(m *matter) *finding {
	time, most := m.of(Agents)
	if most == nil {
		return nil
	}
	return &finding{Verdict{
		Cause: CauseAgent, Says: most.String(),
		Remedy: "look into the agent: its log at that time, its CPU limit, what it waits for",
		Report: "cilium/cilium#45103",
	}, time}
}

// connections lists those of all images.
func (m *matter) connections() (all []*timeline.Connection) {
	for _, im := range m.images {
		if im.Inside != nil {
			all = append(all, im.Inside.Connections...)
		}
	}
	return all
}

// refusedAgent: nobody answers where the plugin calls.
func refusedAgent(m *matter) *finding {
	var worst *timeline.Connection
	for _, c := range m.connections() {
		if c.Error != "" && (worst == nil || c.Tries > worst.Tries) {
			worst = c
		}
	}
	if worst == nil {
		return nil
	}
	return &finding{Verdict{
		Cause:  CauseRefused,
		Says:   fmt.Sprintf("calling %s in vain, %d times: %s", worst.Address, worst.Tries, worst.Error),
		Remedy: "the agent does not run, or listens elsewhere: look at its pod, and at the socket's path in the plugin's configuration",
		Report: "containerd/containerd#4666",
	}, time.Duration(worst.End - worst.Start)}
}

// apiServer: IPAM asked the API server of the cluster, and waited for it. Its port is 443
// as a service, 6443 of its own (kubeadm).
func apiServer(m *matter) *finding {
	var slowest *timeline.Connection
	for _, c := range m.connections() {
		server := c.Network == "tcp" && (strings.HasSuffix(c.Address, ":443") || strings.HasSuffix(c.Address, ":6443"))
		if server && c.Error == "" && (slowest == nil || c.End-c.Start > slowest.End-slowest.Start) {
			slowest = c
		}
	}
	time, most := m.of(Agents)
	if slowest == nil || most == nil || !strings.Contains(most.Name, slowest.Address) {
		return nil
	}
	return &finding{Verdict{
		Cause: CauseAPIServer, Says: fmt.Sprintf("asking the API server at %s", slowest.Address),
		Remedy: "the plugin needs the API server for each pod (whereabouts: one lease for all): look at its latency and at client-side throttling",
		Report: "k8snetworkplumbingwg/whereabouts#313",
	}, time}
}
