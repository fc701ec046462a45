// Package firstconn explains a pod's late first connection from the kernel's counters: earlier attempts and results.
//
// They cover the network namespace since its creation. A dropping policy and an absent machine look the same.
package firstconn

import (
	"fmt"
	"strconv"
	"strings"
)

// Cause is why it was late.
type Cause string

// Causes by precedence: consequences come later.
const (
	NoNeighbour Cause = "arp"         // neighbor's link-layer address unknown
	NoRoute     Cause = "no_route"    // no route to the destination
	Unreachable Cause = "unreachable" // according to ICMP
	Unanswered  Cause = "unanswered"  // a SYN was repeated
	Refused     Cause = "refused"     // attempts failed with an answer
	NoReply     Cause = "dns"         // unanswered UDP datagrams, usually DNS
	Idle        Cause = "idle"        // no earlier attempt: not the network
)

// Tries are a namespace's attempts so far.
type Tries struct {
	Opened     uint64 // connections (ActiveOpens)
	Failed     uint64 // of these (AttemptFails)
	SYNs       uint64 // repeated, and answers to them (TCPSynRetrans)
	Unroutable uint64 // OutNoRoutes
	Unreached  uint64 // InDestUnreachs, from ICMP
	Asked      uint64 // UDP datagrams sent
	Answered   uint64 // UDP datagrams received
	// Silent are neighbors without an ARP answer; no file has IPv6's.
	Silent []string
}

// Unknown is for an absent namespace; Why then returns nothing.
func Unknown() Tries { return Tries{Opened: 2} }

// silentMax bounds the named neighbors.
const silentMax = 4

// Parse reads /proc/PID/net/snmp, netstat and arp; missing counters are 0.
func Parse(snmp, netstat, arp string) Tries {
	count := counters(snmp + "\n" + netstat)
	t := Tries{
		Opened: count["Tcp ActiveOpens"], Failed: count["Tcp AttemptFails"], SYNs: count["TcpExt TCPSynRetrans"],
		Unroutable: count["Ip OutNoRoutes"], Unreached: count["Icmp InDestUnreachs"],
		Asked: count["Udp OutDatagrams"], Answered: count["Udp InDatagrams"],
	}
	for line := range strings.Lines(arp) {
		// IP address, HW type, Flags, HW address, Mask, Device. Flag 2, ATF_COM: the address is known.
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

// counters reads pairs of lines, names and values, with the same first word.
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

// Why returns the first cause, and all evidence.
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
	add(Unreachable, t.Unreached > 0,
		"ICMP reported %d times that a destination is unreachable: a policy rejects, or a router has no route", t.Unreached)
	add(Unanswered, t.SYNs > 0,
		"SYN sent again %d times without an answer: a policy drops it, a Service has no rules yet, or the address is unused",
		t.SYNs)
	add(Refused, t.Failed > 0 && t.SYNs == 0 && len(t.Silent) == 0,
		"%d attempts failed at once: no process listened there", t.Failed)
	add(NoReply, t.Asked > t.Answered,
		"%d of %d UDP datagrams had no answer, usually DNS queries", t.Asked-min(t.Answered, t.Asked), t.Asked)
	add(Idle, len(all) == 0 && t.Opened <= 1, "it had tried nothing before: the network is not the cause")
	return cause, strings.Join(all, "; ")
}
