package event

import "strings"

// Kinds of obstacles of one pod: a thing that its ADD set is not on the node any more, or a MAC address changed. Name
// is the thing, or for ObstacleNeighbor a clause.
const (
	ObstacleRoute    ObstacleKind = "route"    // a route, or a rule of routing
	ObstacleFilter   ObstacleKind = "filter"   // a packet filter's chain
	ObstacleNeighbor ObstacleKind = "neighbor" // a permanent neighbor entry
	ObstacleGone     ObstacleKind = "gone"     // an address, or a port of a bridge
)

// Gone returns the obstacle of a missing thing: "route 10.22.0.5/32", "chain CNI-DN-07ab".
func Gone(thing string) Obstacle {
	kinds := map[string]ObstacleKind{"route": ObstacleRoute, "rule": ObstacleRoute, "chain": ObstacleFilter}
	kind, _, _ := strings.Cut(thing, " ")
	if k, known := kinds[kind]; known {
		return Obstacle{Kind: k, Name: thing}
	}
	return Obstacle{Kind: ObstacleGone, Name: thing}
}

// OfPod reports whether the obstacle concerns one pod.
func (o Obstacle) OfPod() bool {
	return o.Kind == ObstacleRoute || o.Kind == ObstacleFilter || o.Kind == ObstacleNeighbor || o.Kind == ObstacleGone
}

func (o Obstacle) ofPod() (says, remedy string) {
	again := "delete the pod, so that the ADD of a new one sets it"
	says = o.Name + " is gone, which the pod's ADD set"
	switch o.Kind {
	case ObstacleRoute:
		return says, again + "; if systemd-networkd runs, set " +
			"ManageForeignRoutingPolicyRules=no and ManageForeignRoutes=no in networkd.conf and restart it"
	case ObstacleFilter:
		says = o.Name + " is gone or empty, which the pod's ADD set"
		return says, again + "; if firewalld runs, set FlushAllOnReload=no in firewalld.conf; nothing on the node may " +
			"flush rules of others (iptables -F, nft flush ruleset)"
	case ObstacleNeighbor:
		return o.Name, again + "; if systemd-udevd runs, set MACAddressPolicy=none for veth interfaces in a .link file " +
			"(systemd.link)"
	}
	return says, again
}
