// Package leak finds what sandboxes that are gone still hold of a node's network: an ADD that no DEL followed,
// and addresses that host-local has leased. It is pure: what is on the node comes as a Look, from pkg/doctor/gather.
//
// Nobody is accused on a guess. What is younger than the bound may still be on its way; what bears the id of any
// container, sandbox or process of the node is in use; and without the runtime's list there is no Look.
package leak

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

// After is how old an ADD or a lease is at least that is called leaked. A sandbox that is being made is in no list
// until its network is there, and kubelet waits up to four minutes for that (twice runtimeRequestTimeout).
const After = 5 * time.Minute

// Attachment is a network that a sandbox was given by an ADD, and that no DEL has taken back.
type Attachment struct {
	ContainerID string    `json:"sandbox"`
	Network     string    `json:"network,omitempty"`
	IfName      string    `json:"ifname"`
	Pod         event.Pod `json:"pod,omitzero"`
	// Since is when the ADD was over.
	Since     time.Time `json:"since"`
	Addresses []string  `json:"addresses,omitempty"`
	// File is libcni's cached result, which also holds what a DEL needs; empty where there is none.
	File string `json:"file,omitempty"`
	// Failed says that the ADD failed. What it had done by then may still be there.
	Failed bool `json:"failed,omitempty"`
	// Tried is how often a DEL was tried in vain, and Says why the last one failed, as far as that was seen.
	Tried int    `json:"tried,omitempty"`
	Says  string `json:"says,omitempty"`
}

// Lease is an address that host-local gave away.
type Lease struct {
	Network, Address    string
	ContainerID, IfName string
	Since               time.Time
	File                string
}

// Look is what a node has at one moment.
type Look struct {
	Time time.Time
	// Boot is when the node was started; zero if that is not known.
	Boot time.Time
	// Alive are the ids by which sandboxes, containers and processes of the node are known.
	Alive map[string]bool
	// Cached are the results that libcni keeps, Complete that all of its folders could be read: an ADD that
	// succeeded and has none was taken back.
	Cached   []Attachment
	Complete bool
	Leases   []Lease
	// Total is how many addresses each network has leased, leaked or not.
	Total map[string]int
	// More is how many results and leases were not looked at since there are too many.
	More int
}

// gone reports whether whoever got something at since is there no more.
func (l Look) gone(id string, since time.Time, after time.Duration) bool {
	return id != "" && !l.Alive[id] && l.Time.Sub(since) >= after
}

// Attachments are those whose sandbox is gone, of those that libcni remembers and those that were seen to be
// added: the oldest first.
func (l Look) Attachments(seen []Attachment, after time.Duration) (leaked []Attachment) {
	for _, a := range l.Cached {
		if a.IfName == "lo" || !l.gone(a.ContainerID, a.Since, after) {
			continue
		}
		for _, s := range seen {
			if same(a, s) {
				a.Tried, a.Says, a.Pod = s.Tried, s.Says, orPod(a.Pod, s.Pod)
			}
		}
		leaked = append(leaked, a)
	}
	for _, s := range seen {
		known := slices.ContainsFunc(l.Cached, func(a Attachment) bool { return same(a, s) })
		if known || s.IfName == "lo" || !s.Failed && l.Complete || !l.gone(s.ContainerID, s.Since, after) {
			continue
		}
		leaked = append(leaked, s)
	}
	slices.SortStableFunc(leaked, func(a, b Attachment) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ContainerID, b.ContainerID), cmp.Compare(a.IfName, b.IfName))
	})
	return leaked
}

// Leaked are the leases of sandboxes that are gone, the oldest first.
func (l Look) Leaked(after time.Duration) (leaked []Lease) {
	for _, one := range l.Leases {
		if l.gone(one.ContainerID, one.Since, after) {
			leaked = append(leaked, one)
		}
	}
	slices.SortStableFunc(leaked, func(a, b Lease) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.File, b.File))
	})
	return leaked
}

func same(a, b Attachment) bool {
	return a.ContainerID == b.ContainerID && a.IfName == b.IfName && (a.Network == b.Network || a.Network == "" || b.Network == "")
}

func orPod(a, b event.Pod) event.Pod {
	if a.Name == "" {
		return b
	}
	return a
}

// name is what the CNI specification lets a container id and a network be called (section 2, and libcni's
// ValidateContainerID and ValidateNetworkName).
var name = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,253}$`)

// Named reports whether an id or a network's name is one that CNI allows: so it can stand in a command as it is.
func Named(s string) bool { return name.MatchString(s) }

// Interface reports whether s can be the name of an interface (linux/if.h: IFNAMSIZ), and stand in a command.
func Interface(s string) bool { return len(s) < 16 && Named(s) }

// file is a path that stands in a shell's command without quotes.
var file = regexp.MustCompile(`^/[a-zA-Z0-9_./:-]*$`)

// Plain reports whether a path can stand in a command as it is.
func Plain(path string) bool { return file.MatchString(path) }

// Free is the command that takes back what cached results hold, as the runtime's DEL would have: the plugins that
// they name, in reverse order, with the configuration and the result of the ADD. It needs jq.
func Free(files, binDirs []string) string {
	path := strings.Join(binDirs, ":")
	return "for f in " + strings.Join(files, " ") + "; do jq -c '(.config|@base64d|fromjson) as $l|.result as $r|($l.plugins//[$l])|reverse[]|.+{name:$l.name,cniVersion:$l.cniVersion,prevResult:$r}' $f | " +
		"( while read -r c; do printf %s \"$c\" | CNI_COMMAND=DEL CNI_NETNS= CNI_PATH=" + path + " CNI_CONTAINERID=$(jq -r .containerId $f) CNI_IFNAME=$(jq -r .ifName $f) " +
		"CNI_ARGS=$(jq -r '[.cniArgs[]?|join(\"=\")]|join(\";\")' $f) PATH=" + path + ":$PATH $(printf %s \"$c\" | jq -r .type) || exit 1; done ) && rm $f; done"
}
