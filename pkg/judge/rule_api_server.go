package judge

import "fmt"

// apiServer: a plugin, mostly IPAM, asked the API server of the cluster, and waited for it.
func apiServer(m *matter) *finding {
	time, most, plugin, n := m.asked(isAPIServer)
	if most == nil {
		return nil
	}
	return &finding{Verdict: Verdict{
		Cause: CauseAPIServer, Says: fmt.Sprintf("calling what listens as the API server, at %s, from plugin %s%s", most.Address, plugin, times(n)),
		Remedy: "the plugin needs the API server for each interface of each pod: look at the server's latency, at throttling by the client, and (whereabouts) at the one lease that all nodes wait for",
		Report: "k8snetworkplumbingwg/whereabouts#313",
	}, time: time, kind: Agents}
}
