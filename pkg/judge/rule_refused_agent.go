package judge

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/model"
)

// refusedAgent: nobody answers where the plugin calls, and it goes on trying.
func refusedAgent(e *evidence) *finding {
	time, most, n := e.waited(isRefused)
	if n == 0 {
		return nil
	}
	v := refusal(most.connection())
	if most.part.Asked != "" {
		v.Says += ", " + most.part.Asked
		v.Remedy = unanswered(most.connection())
	}
	return &finding{Verdict: v, time: time, kind: Agents, candidate: most.candidate}
}

// isRefused reports whether it was an attempt to connect, which nobody answered.
func isRefused(w *wait) bool {
	c := w.connection()
	return c != nil && c.Error != "" && c.Exchange == nil
}

func refusal(c *model.Connection) Verdict {
	often := "once"
	if c.Tries > 1 {
		often = fmt.Sprintf("%d times", c.Tries)
	}
	return Verdict{
		Cause:  CauseRefused,
		Says:   fmt.Sprintf("calling %s in vain, %s: %s", c.Address, often, c.Error),
		Remedy: unanswered(c) + ", or correct the address in the plugin's configuration",
		Report: "containerd/containerd#4666",
	}
}

// unanswered says how to have somebody answer there, by the errno of a failed connection.
func unanswered(c *model.Connection) string {
	host := c.Address
	if to, err := netip.ParseAddrPort(host); err == nil {
		host = to.Addr().String()
	}
	switch c.Error {
	case "ETIMEDOUT":
		return fmt.Sprintf("start the machine behind %s, open the packet filters on the way to it (nft list ruleset, network policies)", host)
	case "EHOSTUNREACH", "ENETUNREACH":
		return fmt.Sprintf("add a route to %s (ip route get %[1]s says what is missing), start the machine behind it", host)
	}
	return fmt.Sprintf("start the agent that listens at %s (kubectl logs --previous has the last lines of one that ended)", c.Address)
}

// refusedLast returns a failed run's unanswered connection if it was the last: else the run did without.
func refusedLast(run *model.Image) (last *model.Connection) {
	end := int64(0)
	for f, c := range model.Each[*model.Connection](run.Facts) {
		// Every program of the C library asks for a cache of names first (nscd(8)).
		if !strings.Contains(c.Address, "/nscd/") && (last == nil || f.When.End >= end) {
			last, end = c, f.When.End
		}
	}
	if last == nil || last.Error == "" || time.Duration(run.End-end) > aftermath {
		return nil
	}
	return last
}

// aftermath bounds how long a plugin undoes its work after the unanswered connection that made it fail.
const aftermath = 2 * time.Second
