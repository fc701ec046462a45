package doctor

import (
	"maps"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/text"
)

func obstacles(f *fact.Facts) (all []event.Obstacle) {
	for _, t := range f.Forwarding.Value.Tables {
		if t.Full() {
			all = append(all, event.Obstacle{
				Kind: event.ObstacleTable, Name: t.Name, Option: t.Option, Used: t.Used, Limit: t.Limit,
			})
		}
	}
	if !routesPods(f) {
		return all
	}
	for _, name := range slices.Sorted(maps.Keys(f.Forwarding.Value.Switches)) {
		if on := f.Forwarding.Value.Switches[name]; !on && crossed(f, name) {
			name = dotted.Replace("net/" + name)
			all = append(all, event.Obstacle{Kind: event.ObstacleSwitch, Name: name})
		}
	}
	for _, c := range f.Chains.Value {
		if c.Drops && podsHave(f, c.Family) {
			chain := &event.Chain{
				Backend: c.Backend, Family: c.Family, Table: c.Table, Name: c.Name, Rules: c.Rules, Handle: c.Handle,
			}
			all = append(all, event.Obstacle{Kind: event.ObstaclePolicy, Name: chain.String(), Chain: chain})
		}
	}
	return all
}

// dotted turns a path below /proc/sys into a sysctl's name, and back: an interface's name may have a dot.
var dotted = strings.NewReplacer("/", ".", ".", "/")

func crossed(f *fact.Facts, name string) bool {
	part := strings.Split(name, "/")
	if !podsHave(f, map[string]string{"ipv4": "ip", "ipv6": "ip6"}[part[0]]) {
		return false
	}
	if len(part) != 4 || part[2] == "all" {
		return true
	}
	return slices.Contains(f.Forwarding.Value.Default, part[2]) ||
		slices.ContainsFunc(f.CRI.Value.Loaded, func(l fact.Loaded) bool { return slices.Contains(l.Bridges, part[2]) })
}

func podsHave(f *fact.Facts, family string) bool {
	var four, six bool
	for _, l := range f.CRI.Value.Loaded {
		if !routed(l) {
			continue
		}
		for _, p := range l.Subnets {
			four, six = four || p.Addr().Is4(), six || p.Addr().Is6()
		}
		for _, a := range slices.Concat(f.Held.Value.Cached, f.Held.Value.Living, f.Held.Value.Stopped) {
			for _, address := range a.Addresses {
				is6 := strings.Contains(address, ":")
				four, six = four || a.Network == l.Name && !is6, six || a.Network == l.Name && is6
			}
		}
	}
	switch family {
	case "ip":
		return four || !six
	case "ip6":
		return six
	}
	return true
}

func podsAreForwarded(f *fact.Facts) (found []Finding, err error) {
	for _, o := range obstacles(f) {
		found = append(found, drops(o))
	}
	if !routesPods(f) {
		return found, notApplicable("no loaded network needs the node to forward packets")
	}
	return append(found, unbridged(f)...), f.Chains.Err
}

func unbridged(f *fact.Facts) []Finding {
	if !slices.ContainsFunc(f.CRI.Value.Loaded, func(l fact.Loaded) bool {
		return len(l.Plugins) > 0 && (l.Plugins[0].Type == "bridge" || slices.Contains(l.Delegates, "bridge"))
	}) {
		return nil
	}
	var why, set []string
	for _, family := range []string{"ip", "ip6"} {
		w := f.Forwarding.Value.Unbridged[family]
		if w == "" || !podsHave(f, family) || !slices.ContainsFunc(f.Chains.Value, func(c fact.Chain) bool {
			return c.Family == family && ofKubeProxy(c)
		}) {
			continue
		}
		why, set = append(why, w), append(set, "net.bridge.bridge-nf-call-"+family+"tables=1")
	}
	if len(why) == 0 {
		return nil
	}
	why = slices.Compact(why)
	return []Finding{Warning.finding(
		"a pod may get no answer from a Service whose endpoint is on the pod's own bridge: "+strings.Join(why, ", "),
		append(why, "kube-proxy's rules do not see an answer inside the bridge, so it keeps the endpoint's address, unless "+
			"kube-proxy runs with masqueradeAll"),
		"modprobe br_netfilter && sysctl -w "+strings.Join(set, " ")+"; to keep this after a restart, set both in "+
			"/etc/modules-load.d and /etc/sysctl.d")}
}

// drops reports an obstacle. A chain with rules is a note: the CNI may accept its pods, as beside Docker.
func drops(o event.Obstacle) Finding {
	says, remedy := judge.Obstacle(o)
	finding := Problem.finding(fact.Clean(says), nil, remedy)
	switch {
	case o.Kind == event.ObstacleSwitch:
		finding.Summary = "the node does not forward packets of pods: " + finding.Summary
		finding.Evidence = []string{
			fact.Sayf("/proc/sys/%s: 0", dotted.Replace(o.Name)), "pods reach only pods of their own bridge",
		}
	case o.Kind == event.ObstacleTable:
		finding.Evidence = []string{
			fact.Sayf("%s = %d", o.Option, o.Limit), "the kernel drops packets that need a new entry",
		}
	case o.Certain():
		every := "every packet"
		if o.Chain.Family == "ip6" {
			every = "every IPv6 packet"
		}
		finding.Summary = "the firewall drops " + every + " that the node forwards: " + finding.Summary
		finding.Evidence = []string{seen(o)}
	default:
		why := fact.Sayf("the policy of %s is drop", o.Name)
		finding.Remedy = []string{"nothing, if pods reach other nodes; otherwise: " + judge.Accept(o.Chain)}
		if o.Chain.Handle > 0 {
			why = finding.Summary
			finding.Remedy = []string{"nothing, if pods reach other nodes; otherwise accept the pods' subnets before that rule"}
		}
		finding.Level, finding.Evidence = Note, []string{seen(o)}
		finding.Summary = "the firewall drops forwarded packets that no rule accepts: " + why
	}
	return finding
}

func seen(o event.Obstacle) string {
	rules := text.Count(o.Chain.Rules, "rule")
	if o.Chain.Handle > 0 {
		return fact.Sayf("%s: rule with handle %d after %s", o.Name, o.Chain.Handle, rules)
	}
	return fact.Sayf("%s: policy drop, %s", o.Name, rules)
}

func routesPods(f *fact.Facts) bool { return slices.ContainsFunc(f.CRI.Value.Loaded, routed) }

func routed(l fact.Loaded) bool {
	return len(l.Plugins) > 0 && !slices.Contains(fact.OnLink, l.Plugins[0].Type)
}

func podsKeepTheirNetwork(f *fact.Facts) (found []Finding, err error) {
	at := map[event.ObstacleKind]int{}
	byPod := func(a, b fact.Gone) int { return strings.Compare(podOf(a.Attachment), podOf(b.Attachment)) }
	for _, g := range slices.SortedStableFunc(slices.Values(f.Gone.Value), byPod) {
		for _, o := range g.Obstacles {
			says, remedy := judge.Obstacle(o)
			i, known := at[o.Kind]
			if !known {
				i = len(found)
				at[o.Kind] = i
				found = append(found, Problem.finding(
					fact.Sayf("pod %s has lost a part of its network: %s", podOf(g.Attachment), says), nil, remedy))
			}
			found[i].Evidence = append(found[i].Evidence, fact.Sayf("pod %s, sandbox %s: %s", podOf(g.Attachment),
				g.ContainerID, says))
		}
	}
	for i := range found {
		found[i].Evidence = fact.Cap(found[i].Evidence)
	}
	return found, nil
}
