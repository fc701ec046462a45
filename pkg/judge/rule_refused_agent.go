package judge

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/model"
)

func refusedAgent(e *evidence) *finding {
	time, most, n := e.waited(isRefused)
	if n == 0 {
		return nil
	}
	s := &e.spans[most.span]
	v := refusal(most.connection(), commandOf(s.image))
	if most.part.Asked != "" {
		v.Says = refusal(most.connection(), nameOf(s.agent)).Says + ", while plugin " + s.plugin + " waited"
		v.Remedy = unanswered(most.connection())
	}
	return &finding{Verdict: v, time: time, kind: Agents, candidate: most.candidate}
}

func isRefused(w *wait) bool {
	c := w.connection()
	return c != nil && c.Error != "" && c.Exchange == nil
}

func refusal(c *model.Connection, who string) Verdict {
	often := ""
	if c.Tries > 1 {
		often = fmt.Sprintf("%d times ", c.Tries)
	}
	return Verdict{
		Cause:  CauseRefused,
		Says:   fmt.Sprintf("%s failed %sto connect to %s (%s)", who, often, c.Address, c.Error),
		Remedy: unanswered(c) + ", or correct the address in the plugin's configuration",
		Report: "containerd/containerd#4666",
	}
}

func unanswered(c *model.Connection) string {
	host := c.Address
	if to, err := netip.ParseAddrPort(host); err == nil {
		host = to.Addr().String()
	}
	switch c.Error {
	case "ETIMEDOUT":
		return fmt.Sprintf("start the machine behind %s, open the packet filters on the way to it (nft list ruleset, network policies)", host)
	case "EHOSTUNREACH", "ENETUNREACH":
		return fmt.Sprintf("add a route to %s (ip route get %[1]s names the missing route), start the machine behind it", host)
	}
	return fmt.Sprintf("start the agent that listens at %s (kubectl logs --previous shows why it exited)", c.Address)
}

// refusedLast returns a failed run's last connection if it was unanswered, else nil: the run continued without it.
func refusedLast(run *model.Image) (last *model.Connection) {
	end := int64(0)
	for f, c := range model.Each[*model.Connection](run.Facts) {
		// libc connects to nscd(8) first.
		if !strings.Contains(c.Address, "/nscd/") && (last == nil || f.When.End >= end) {
			last, end = c, f.When.End
		}
	}
	if last == nil || last.Error == "" || time.Duration(run.End-end) > aftermath {
		return nil
	}
	return last
}

var refusals = map[string]string{
	"ECONNREFUSED": "connection refused", "ENOENT": "no such file or directory", "ETIMEDOUT": "connection timed out",
	"EHOSTUNREACH": "no route to host", "ENETUNREACH": "network is unreachable",
}

// aftermath bounds a plugin's cleanup after the unanswered connection that made it fail.
const aftermath = 2 * time.Second
