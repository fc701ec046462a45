package judge

import (
	"fmt"
	"regexp"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/text"
)

// Obstacle returns an obstacle as a clause, and its fix, which is empty if it is not certain.
func Obstacle(o event.Obstacle) (says, remedy string) {
	const again, persist = "delete the pod, so that the ADD of a new one sets it", "; set it in /etc/sysctl.d, too"
	says = o.Name + " is gone, which the pod's ADD set"
	switch o.Kind {
	case event.ObstacleSwitch:
		return o.Name + " is 0", "sysctl -w " + text.Shell(o.Name+"=1") + persist + ", and find what resets it"
	case event.ObstacleTable:
		return fmt.Sprintf("the kernel's table of %s is full: %d of %d entries", o.Name, o.Used, o.Limit),
			"sysctl -w " + text.Shell(fmt.Sprintf("%s=%d", o.Option, 2*o.Limit)) + persist
	case event.ObstacleRoute:
		return says, again + "; if systemd-networkd runs, set " +
			"ManageForeignRoutingPolicyRules=no and ManageForeignRoutes=no in networkd.conf and restart it"
	case event.ObstacleFilter:
		return o.Name + " is gone or empty, which the pod's ADD set", again +
			"; if firewalld runs, set FlushAllOnReload=no in firewalld.conf; nothing on the node may " +
			"flush rules of others (iptables -F, nft flush ruleset)"
	case event.ObstacleNeighbor:
		return o.Name, again + "; if systemd-udevd runs, set MACAddressPolicy=none for veth interfaces in a .link file " +
			"(systemd.link)"
	case event.ObstacleGone:
		return says, again
	}
	if o.Certain() {
		return fmt.Sprintf("the policy of %s is drop, and it has no rule", o.Name),
			Accept(o.Chain) + "; stop what sets it (Docker, a firewall service), or let it accept the pods' subnets"
	}
	return fmt.Sprintf("the policy of %s is drop for what none of its %d rules accepts", o.Name, o.Chain.Rules), ""
}

var plainName = regexp.MustCompile(`^[A-Za-z][\w.-]*$`)

// Accept returns the command that has a chain accept.
func Accept(c *event.Chain) string {
	switch {
	case c.Backend == "iptables-legacy" && c.Family == "ip6":
		return "ip6tables-legacy -P FORWARD ACCEPT"
	case c.Backend == "iptables-legacy":
		return "iptables-legacy -P FORWARD ACCEPT"
	}
	// nft parses its arguments again.
	if !plainName.MatchString(c.Family) || !plainName.MatchString(c.Table) || !plainName.MatchString(c.Name) {
		return "run nft list chains, and set the policy of that chain to accept"
	}
	return fmt.Sprintf("nft chain %s %s %s '{ policy accept; }'", c.Family, c.Table, c.Name)
}

// Unstartable returns the fault of a program as a clause, and its fix, which is empty if it is a new copy of the file.
func Unstartable(p event.Program) (says, remedy string) {
	static := fmt.Sprintf("or replace %s with a statically linked build", p.File)
	switch p.Fault {
	case event.FaultAbsent:
		return "it is not in " + p.Has, ""
	case event.FaultName:
		return "its name is a path", ""
	case event.FaultUnreadable:
		return fmt.Sprintf("%s: %s", p.File, p.Has), ""
	case event.FaultMode:
		return fmt.Sprintf("%s is not executable (mode %s)", p.File, p.Has), "chmod 755 " + text.Shell(p.File)
	case event.FaultEmpty:
		return p.File + " is empty: has it been copied?", ""
	case event.FaultMount:
		return fmt.Sprintf("%s is on a file system that is mounted noexec (%s)", p.File, p.Has),
			"mount -o remount,exec " + text.Shell(p.Has)
	case event.FaultArchitecture:
		return fmt.Sprintf("%s is built for %s, this node is %s", p.File, p.Needs, p.Has),
			fmt.Sprintf("replace %s with its build for %s", p.File, p.Has)
	case event.FaultInterpreter:
		return fmt.Sprintf("%s needs the interpreter %s, which does not exist", p.File, p.Needs),
			fmt.Sprintf("install the package that has %s, %s", p.Needs, static)
	case event.FaultLibrary:
		return fmt.Sprintf("%s needs the library %s, which no library directory has", p.File, p.Needs),
			fmt.Sprintf("install the package that has %s (ldd %s lists all), %s", p.Needs, text.Shell(p.File), static)
	case event.FaultVersion:
		return fmt.Sprintf("%s needs %s, which %s does not have", p.File, p.Needs, p.Has),
			fmt.Sprintf("replace %s with a build for this node's %s, or a statically linked one", p.File, p.Has)
	}
	return p.File + " is neither a program nor a script", ""
}
