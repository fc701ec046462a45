package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// LateCause is why a pod's first connection came late.
type LateCause string

// Causes of a late first connection. Obstacles first, then by precedence: consequences later.
const (
	LateForwarding  LateCause = "forwarding"
	LatePolicy      LateCause = "policy"     // a FORWARD chain drops
	LateTable       LateCause = "table_full" // a kernel table
	LateGone        LateCause = "gone"       // what the ADD set
	LateNeighbor    LateCause = "neighbor"   // an entry with an old MAC address
	LateFilter      LateCause = "filter"
	LateRPFilter    LateCause = "rp_filter"
	LateBlackhole   LateCause = "blackhole"
	LateMTU         LateCause = "mtu"
	LateProgram     LateCause = "program"
	LateChecksum    LateCause = "checksum"
	LateHairpin     LateCause = "hairpin"
	LateNoNeighbor  LateCause = "arp"
	LateNoRoute     LateCause = "no_route"
	LateUnreachable LateCause = "unreachable" // according to ICMP
	LateUnanswered  LateCause = "unanswered"  // a SYN was repeated
	LateNoListener  LateCause = "refused"     // attempts failed with an answer
	LateNoReply     LateCause = "dns"         // unanswered UDP datagrams, usually DNS
	LateNotTried    LateCause = "idle"        // no earlier attempt of its own
)

// Connected explains a late first connection; nil without an explanation.
func Connected(c model.Connected) *Verdict {
	if !c.Late || c.Tries == nil && len(c.Drops) == 0 && !slices.ContainsFunc(c.Obstacles, event.Obstacle.OfPod) {
		return nil
	}
	by, lost := dropped(c)
	if by != nil {
		c.Obstacles = slices.DeleteFunc(slices.Clone(c.Obstacles), func(o event.Obstacle) bool { return !by.fits(o) })
	}
	in := inTheWay(c)
	if c.Never && by == nil && (in == nil || !in.Certain() || !onlyOf(c, in)) {
		return nil
	}
	var cause LateCause
	var all []string
	if c.Tries != nil {
		cause, all = tries(c.Tries, in != nil || len(lost) > 0)
	}
	v := &Verdict{Cause: cmp.Or(Cause(cause), CauseUnexplained), Certain: true}
	switch {
	case in != nil:
		says, remedy := Obstacle(*in)
		v.Cause, v.Remedy = Cause(cmp.Or(obstacleCauses[in.Kind], LatePolicy)), remedy
		v.Certain = by.proves(in) && (by != nil || onlyOf(c, in))
		all = slices.Concat([]string{says}, all, lost)
	case by != nil:
		v.Cause, v.Remedy, v.Certain = Cause(by.cause), by.remedy, !by.vague
		all = append(lost, all...)
	default:
		all = append(all, lost...)
	}
	says := "the first connection came %s after the %s"
	if c.Never {
		says = "no connection came within %s of the %s"
	}
	v.Says = fmt.Sprintf(says, text.Round(time.Duration(c.At-c.End)), c.Command)
	if len(all) > 0 {
		v.Says += ": " + strings.Join(all, "; ")
	}
	return v
}

// inTheWay returns the obstacle that explains unanswered packets, or nil. A chain whose rules may accept the pod
// is last. Without an answer to ARP, only a full table explains it.
func inTheWay(c model.Connected) (found *event.Obstacle) {
	if i := slices.IndexFunc(c.Obstacles, event.Obstacle.OfPod); i >= 0 {
		return &c.Obstacles[i]
	}
	if !c.Tries.Unanswered() {
		return nil
	}
	for i := range c.Obstacles {
		switch o := &c.Obstacles[i]; {
		case o.Kind != event.ObstacleTable && (len(c.Tries.Silent) > 0 || c.Tries.Unresolved > 0 && c.Tries.SYNs == 0):
		case !slices.ContainsFunc(families(c), o.Stops):
		case !o.Certain() && o.Chain.Handle > 0: // as firewalld's last rule
		case found == nil, o.Certain() && !found.Certain():
			found = o
		}
	}
	return found
}

func families(c model.Connected) (all []string) {
	for _, address := range c.Addresses {
		family := "ip"
		if strings.Contains(address, ":") {
			family = "ip6"
		}
		all = append(all, family)
	}
	if len(all) == 0 {
		return []string{"ip"}
	}
	return all
}

func onlyOf(c model.Connected, o *event.Obstacle) bool {
	return !slices.ContainsFunc(families(c), func(family string) bool { return !o.Stops(family) })
}

var obstacleCauses = map[event.ObstacleKind]LateCause{
	event.ObstacleSwitch: LateForwarding, event.ObstacleTable: LateTable, event.ObstacleProxy: LateNoNeighbor,
	event.ObstacleNeighbor: LateNeighbor, event.ObstacleReused: LateNeighbor,
	event.ObstacleRoute: LateGone, event.ObstacleFilter: LateGone, event.ObstacleGone: LateGone,
}

func tries(t *event.Tries, explained bool) (cause LateCause, all []string) {
	add := func(c LateCause, is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Sprintf(format, args...))
			if cause == "" {
				cause = c
			}
		}
	}
	add(LateNoNeighbor, len(t.Silent) > 0, "%s did not answer ARP", strings.Join(t.Silent, ", "))
	add(LateNoNeighbor, t.Unresolved > 0 && len(t.Silent) == 0,
		"no neighbor, such as the gateway, answered ARP for %s", packets(t.Unresolved))
	add(LateNoRoute, t.Unroutable > 0, "the pod had no route for %d packets", t.Unroutable)
	add(LateUnreachable, t.Unreached > 0,
		"ICMP reported %d times that a destination is unreachable: a policy rejects it, or a router has no route",
		t.Unreached)
	perhaps := ": a policy may drop it, its Service may have no rules yet, no host has the address, or no route leads " +
		"back to the pod's (masquerading)"
	if explained {
		perhaps = ""
	}
	add(LateUnanswered, t.SYNs > 0, "the kernel repeated a SYN %d times without an answer%s", t.SYNs, perhaps)
	refused := t.Failed - min(t.Failed, t.Unresolved+t.Unreached)
	add(LateNoListener, refused > 0 && t.SYNs == 0 && len(t.Silent) == 0,
		"%d attempts failed at once: no process listened there", refused)
	add(LateNoReply, t.Asked > t.Answered,
		"%d of %d UDP datagrams, such as DNS queries, had no answer", t.Asked-min(t.Answered, t.Asked), t.Asked)
	add(LateNotTried, len(all) == 0 && t.Opened <= 1 && !explained,
		"the pod had tried no connection before: it was idle, or clients could not reach it")
	return cause, all
}
