package judge

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// isRefused: nobody answered.
func isRefused(w *wait) bool { return w.of != nil && w.of.Error != "" }

// isAPIServer: it was the API server of the cluster that was asked, as far as its address
// tells. 6443 is its own port (kubeadm); as a service it has 443 and a private address.
func isAPIServer(c *timeline.Connection) bool {
	if c == nil || c.Network != "tcp" || c.Error != "" {
		return false
	}
	to, err := netip.ParseAddrPort(c.Address)
	return err == nil && (to.Port() == 6443 || to.Port() == 443 && to.Addr().IsPrivate())
}

// asked adds up the time that was lost behind some connections: while they were open, or in
// what their servers did themselves.
func (m *matter) asked(those func(*timeline.Connection) bool) (sum time.Duration, longest *timeline.Connection, plugin string, n int) {
	per := map[*timeline.Connection]time.Duration{}
	count := func(c *timeline.Connection, in string, own int64) {
		if own <= 0 {
			return
		}
		if per[c] == 0 {
			n++
		}
		sum += time.Duration(own)
		per[c] += time.Duration(own)
		if longest == nil || per[c] > per[longest] {
			longest, plugin = c, in
		}
	}
	for i := range m.waits {
		if w := &m.waits[i]; w.of != nil && those(w.of) {
			count(w.of, w.part.In, w.own)
		}
	}
	for i := range m.spans {
		if s := &m.spans[i]; s.agent != nil && those(s.agent) {
			count(s.agent, s.plugin, s.own)
		}
	}
	return sum, longest, plugin, n
}

// times says how often, where that is more than once.
func times(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d times)", n)
}
