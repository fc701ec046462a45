package judge

import (
	"slices"
	"strings"
)

// special is what holds of a cause only beside one CNI, which the names of its plugins tell. Only the administrator of
// a node installs plugins; a name of an agent, or its answer, may come from a pod.
type special struct {
	cause          Cause
	plugins        string // separated by blanks
	remedy, report string
}

func specials() []special {
	return []special{
		{CausePowerShell, "antrea", "", "antrea-io/antrea#4859"},
		{CauseAgent, "cilium-cni", "", "cilium/cilium#45103"},
		{CauseBusy, "cilium-cni", " (--api-rate-limit)", "cilium/cilium#22023"},
		{CauseAPIServer, "whereabouts", "", "k8snetworkplumbingwg/whereabouts#313"},
		{CauseLockFile, "azure-vnet azure-vnet-ipam", "", "Azure/azure-container-networking#464"},
	}
}

// beside adds to a verdict what is special to a plugin's CNI.
func (v Verdict) beside(plugin string) Verdict {
	for _, s := range specials() {
		if s.cause == v.Cause && slices.Contains(strings.Fields(s.plugins), plugin) {
			v.Remedy, v.Report = v.Remedy+s.remedy, s.report
		}
	}
	return v
}
