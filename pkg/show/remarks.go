package show

import (
	"fmt"
	"strings"

	"github.com/cniscope/cniscope/pkg/judge"
)

// remarks are what there is to say about a span beside its name, its time and that it was
// slow or failed.
func (n *node) remarks() (all []string) {
	remark := func(is bool, s string) {
		if is {
			all = append(all, s)
		}
	}
	remark(n.text("cniscope.signal") != "", "killed by "+n.text("cniscope.signal"))
	remark(n.number("process.exit.code") != 0, fmt.Sprintf("exit %d", n.number("process.exit.code")))
	remark(n.about() != "", n.about())
	remark(n.kind() != "netlink" && n.text("process.command") == "" && n.text("error.type") != "", n.text("error.type"))
	remark(n.is("cniscope.outlived"), "outlived its plugin")
	remark(n.is("cniscope.unfinished"), "still running")
	remark(n.is("cniscope.end_unseen"), "end not seen")
	remark(n.is("cniscope.in_flight_at_start"), "running before cniscope")
	remark(n.count > 1, n.sum())
	return all
}

// about is what a span of the inside of a plugin is about, in a few words: which interface,
// which lock and who has it, who was called. Empty for plugins and commands.
func (n *node) about() string {
	switch n.text("cniscope.kind") {
	case "interface":
		return n.named() + "  " + plural(int(n.number("cniscope.changes")), "change")
	case "netlink":
		return n.words("network.interface.name", "cniscope.address", "cniscope.route", "cniscope.rule.table", "cniscope.request.errno", "cniscope.request.message")
	case "lock":
		return n.words("cniscope.lock.path", "cniscope.lock.name") + n.holder()
	case "change":
		return strings.Join(strings.Fields(n.text("cniscope.sysctl.key")+" = "+n.text("cniscope.sysctl.value")), " ")
	case "dad":
		return n.words("network.interface.name", "cniscope.address", "cniscope.address_state")
	case "agent":
		said := n.words("cniscope.agent", "network.peer.address")
		if tries := n.number("cniscope.tries"); tries > 1 {
			said += fmt.Sprintf("  %d attempts", tries)
		}
		return said
	case "wait":
		return n.text("cniscope.system_call")
	case "first connection":
		return fmt.Sprintf("%s after the end of the call", judge.Round(n.ms("cniscope.first_connection_ms")))
	}
	return ""
}

// named is an interface by its name, else by its index.
func (n *node) named() string {
	if name := n.text("network.interface.name"); name != "" {
		return name
	}
	return fmt.Sprintf("#%d", n.number("cniscope.interface.index"))
}

func (n *node) holder() string {
	who := n.text("cniscope.lock.holder_name")
	if pid := n.number("cniscope.lock.holder_pid"); pid != 0 {
		who = strings.TrimSpace(fmt.Sprintf("%s (pid %d)", who, pid))
	}
	if who == "" {
		return ""
	}
	said := "  held by " + who
	if age := n.ms("cniscope.lock.holder_age_ms"); age > 0 {
		said += " for " + judge.Round(age).String()
		if !n.is("cniscope.lock.holder_age_exact") {
			said += " at least"
		}
	}
	return said
}

// words are the values of attributes, as far as they are there.
func (n *node) words(keys ...string) string {
	var all []string
	for _, key := range keys {
		if s := n.text(key); s != "" {
			all = append(all, s)
		}
	}
	return strings.Join(all, " ")
}
