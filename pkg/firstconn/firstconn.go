// Package firstconn tells from what the kernel counted in a pod's network namespace why the pod's first connection was
// so late: whether it had tried before, and what came of that.
//
// The counts are of the whole namespace since it was made. They say that a packet was not answered, and to whom, and
// not why: a policy that drops and a machine that is not there look the same from here.
package firstconn

import (
	"fmt"
	"strconv"
	"strings"
)

// Cause is why a first connection was late, in one word.
type Cause string

// The causes, in the order in which they are looked for: what others follow from first.
const (
	NoNeighbour Cause = "arp"         // a neighbour's link-layer address is not known: it did not answer
	NoRoute     Cause = "no_route"    // the namespace has no route to where it wanted
	Unreachable Cause = "unreachable" // it was told so, by ICMP
	Unanswered  Cause = "unanswered"  // a SYN was sent again and again
	Refused     Cause = "refused"     // attempts failed, and were answered
	NoReply     Cause = "dns"         // UDP datagrams that nobody answered, as a rule DNS queries
	Idle        Cause = "idle"        // it had not tried before: the network is not why
)

// Tries are what a namespace tried until now.
type Tries struct {
	Opened     uint64 // connections that it tried to make (ActiveOpens)
	Failed     uint64 // those of them that failed (AttemptFails)
	SYNs       uint64 // SYNs, and answers to them, that were sent again (TCPSynRetrans)
	Unroutable uint64 // packets without a route (OutNoRoutes)
	Unreached  uint64 // ICMP messages that something cannot be reached (InDestUnreachs)
	Asked      uint64 // UDP datagrams sent
	Answered   uint64 // UDP datagrams received
	// Silent are neighbours that did not answer ARP. Those of IPv6 are in no file.
	Silent []string
}

// Unknown returns what is known of a namespace that cannot be found: nothing, so that Why says nothing. The zero
// value would say that it tried nothing.
func Unknown() Tries { return Tries{Opened: 2} }

// silentMax is how many neighbours are named.
const silentMax = 4

// Parse reads /proc/PID/net/snmp, netstat and arp. What they do not have is 0.
func Parse(snmp, netstat, arp string) Tries {
	count := counters(snmp + "\n" + netstat)
	t := Tries{
		Opened: count["Tcp ActiveOpens"], Failed: count["Tcp AttemptFails"], SYNs: count["TcpExt TCPSynRetrans"],
		Unroutable: count["Ip OutNoRoutes"], Unreached: count["Icmp InDestUnreachs"],
		Asked: count["Udp OutDatagrams"], Answered: count["Udp InDatagrams"],
	}
	for line := range strings.Lines(arp) {
		// IP address, HW type, Flags, HW address, Mask, Device. Flag 2 is ATF_COM: the address is known.
		f := strings.Fields(line)
		if len(f) != 6 || !strings.HasPrefix(f[2], "0x") || len(t.Silent) >= silentMax {
			continue
		}
		if flags, err := strconv.ParseUint(f[2][2:], 16, 32); err == nil && flags&2 == 0 {
			t.Silent = append(t.Silent, f[0])
		}
	}
	return t
}

// counters reads lines in pairs: one of names, one of values, both beginning with what they are about.
func counters(text string) map[string]uint64 {
	all := map[string]uint64{}
	var names []string
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(names) != len(f) || names[0] != f[0] {
			names = f
			continue
		}
		for i := 1; i < len(f); i++ {
			if n, err := strconv.ParseUint(f[i], 10, 64); err == nil {
				all[strings.TrimSuffix(f[0], ":")+" "+names[i]] = n
			}
		}
		names = nil
	}
	return all
}

// Why says why the first connection was late, as far as that can be told; empty where it cannot. All that there is
// evidence for is said, and the cause is what comes first.
func (t Tries) Why() (cause Cause, says string) {
	var all []string
	add := func(c Cause, is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Sprintf(format, args...))
			if cause == "" {
				cause = c
			}
		}
	}
	add(NoNeighbour, len(t.Silent) > 0, "ARP: no answer from %s", strings.Join(t.Silent, ", "))
	add(NoRoute, t.Unroutable > 0, "no route for %d packets", t.Unroutable)
	add(Unreachable, t.Unreached > 0, "told %d times that a destination cannot be reached: a policy that rejects, or no route on the way", t.Unreached)
	add(Unanswered, t.SYNs > 0, "SYN sent again %d times, without an answer: dropped by a policy, a Service that has no rules yet, or nobody there", t.SYNs)
	add(Refused, t.Failed > 0 && t.SYNs == 0 && len(t.Silent) == 0, "%d attempts failed at once: nobody listened there", t.Failed)
	add(NoReply, t.Asked > t.Answered, "%d of %d UDP datagrams had no answer, DNS queries as a rule", t.Asked-min(t.Answered, t.Asked), t.Asked)
	add(Idle, len(all) == 0 && t.Opened <= 1, "it had tried nothing before: the network is not why")
	return cause, strings.Join(all, "; ")
}
