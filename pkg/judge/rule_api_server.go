package judge

import (
	"fmt"
	"net/netip"

	"github.com/cniscope/cniscope/pkg/model"
)

func apiServer(e *evidence) *finding {
	time, most, plugin, n := e.asked(isAPIServer)
	if most == nil {
		return nil
	}
	return &finding{Verdict: Verdict{
		Cause: CauseAPIServer,
		Says: fmt.Sprintf("plugin %s waited%s for %s, which looks like the API server%s",
			plugin, times(n), most.Address, e.within(plugin, time)),
		Remedy: CauseAPIServer.remedy(),
	}.beside(plugin), time: time, kind: Agents}
}

// isAPIServer recognizes the API server by its address: port 6443 (kubeadm), or 443 of a private address.
func isAPIServer(c *model.Connection) bool {
	if c.Network != "tcp" || c.Error != "" || c.Exchange != nil {
		return false
	}
	to, err := netip.ParseAddrPort(c.Address)
	return err == nil && isAPIServerAddress(to)
}

func isAPIServerAddress(to netip.AddrPort) bool {
	return to.Port() == 6443 || to.Port() == 443 && to.Addr().IsPrivate()
}
