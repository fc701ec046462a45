// Package leak finds removed sandboxes' resources: attachments (an ADD without a DEL) and leases of host-local,
// unless young. It is pure: pkg/doctor/gather makes the Look.
package leak

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

// After is a leak's minimum age: kubelet waits up to four minutes (twice runtimeRequestTimeout).
const After = 5 * time.Minute

// Attachment is a network of a sandbox.
type Attachment struct {
	ContainerID string    `json:"sandbox"`
	Network     string    `json:"network,omitempty"`
	IfName      string    `json:"ifname"`
	Pod         event.Pod `json:"pod,omitzero"`
	Since       time.Time `json:"since"`
	Addresses   []string  `json:"addresses,omitempty"`
	// File is libcni's cached result, if any, which a DEL needs.
	File string `json:"file,omitempty"`
	// Links are its interfaces on the node, MACs are the pod's, NetNS is the file of its network namespace.
	Links []string `json:"-"`
	MACs  []string `json:"-"`
	NetNS string   `json:"-"`
	// Set are things that the ADD set on the node.
	Set []string `json:"set,omitempty"`
	// Failed means that the ADD failed, but may have left something.
	Failed bool   `json:"failed,omitempty"`
	Tried  int    `json:"tried,omitempty"`
	Says   string `json:"says,omitempty"`
}

// Lease is an address that host-local leased.
type Lease struct {
	Network, Address    string
	ContainerID, IfName string
	Since               time.Time
	File                string
}

// Look is the state of a node.
type Look struct {
	Time  time.Time
	Boot  time.Time
	Alive map[string]bool
	// Cached are libcni's cached results. If Complete, an ADD without a result was undone.
	Cached   []Attachment
	Complete bool
	// Stopped are cached results of stopped sandboxes, Living those of running ones.
	Stopped, Living []Attachment
	// Damaged are those that are no JSON; only ContainerID, Since and File are set.
	Damaged []Attachment
	Leases  []Lease
	Total   map[string]int
	// More counts unexamined results and leases.
	More int
}

func (l Look) gone(id string, since time.Time, after time.Duration) bool {
	return id != "" && !l.Alive[id] && l.Time.Sub(since) >= after
}

// Attachments returns those of gone sandboxes, oldest first.
func (l Look) Attachments(seen []Attachment, after time.Duration) (leaked []Attachment) {
	for _, a := range l.Cached {
		if a.IfName == "lo" || !l.gone(a.ContainerID, a.Since, after) {
			continue
		}
		for _, s := range seen {
			if !same(a, s) {
				continue
			}
			if a.Tried, a.Says = s.Tried, s.Says; a.Pod.Name == "" {
				a.Pod = s.Pod
			}
		}
		leaked = append(leaked, a)
	}
	for _, s := range seen {
		if l.gone(s.ContainerID, s.Since, after) && s.IfName != "lo" && (s.Failed || !l.Complete) && !among(l.Cached, s) {
			leaked = append(leaked, s)
		}
	}
	slices.SortStableFunc(leaked, func(a, b Attachment) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ContainerID, b.ContainerID), cmp.Compare(a.IfName, b.IfName))
	})
	return leaked
}

// Leaked returns leases of gone sandboxes, oldest first.
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
	return a.ContainerID == b.ContainerID && a.IfName == b.IfName &&
		(a.Network == b.Network || a.Network == "" || b.Network == "")
}

func among(all []Attachment, a Attachment) bool {
	return slices.ContainsFunc(all, func(b Attachment) bool { return same(a, b) })
}

// name is the format of CNI container ids and networks (section 2; libcni's ValidateContainerID and
// ValidateNetworkName).
var name = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,253}$`)

// Named reports whether CNI allows s, which then needs no quotes.
func Named(s string) bool { return name.MatchString(s) }

// Interface is Named for interfaces (linux/if.h: IFNAMSIZ).
func Interface(s string) bool { return len(s) < 16 && Named(s) }

var file = regexp.MustCompile(`^/[a-zA-Z0-9_./:-]*$`)

// Plain reports whether a path needs no shell quotes.
func Plain(path string) bool { return file.MatchString(path) }

// Free returns a shell command that does the runtime's DEL for cached results. It needs jq.
func Free(files, binDirs []string) string {
	path := strings.Join(binDirs, ":")
	return "for f in " + strings.Join(files, " ") + "; do " +
		"jq -c '(.config|@base64d|fromjson) as $l|.result as $r|($l.plugins//[$l])|reverse[]" +
		"|.+{name:$l.name,cniVersion:$l.cniVersion,prevResult:$r}' $f | " +
		"( while read -r c; do printf %s \"$c\" | CNI_COMMAND=DEL CNI_NETNS= CNI_PATH=" + path +
		" CNI_CONTAINERID=$(jq -r .containerId $f) CNI_IFNAME=$(jq -r .ifName $f) " +
		"CNI_ARGS=$(jq -r '[.cniArgs[]?|join(\"=\")]|join(\";\")' $f) PATH=" + path + ":$PATH " +
		"$(printf %s \"$c\" | jq -r .type) || exit 1; done ) && rm $f; done"
}
