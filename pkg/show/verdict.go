package show

import (
	"fmt"
	"strings"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/text"
)

// verdict is what is to be said of a call in one sentence: the judge's, else what failed,
// else where most of its time went. Empty if nothing is known.
func (n *node) verdict() string {
	part := n.text(attr.BiggestPartKey)
	switch {
	case n.text(attr.VerdictKey) != "":
		return n.text(attr.VerdictKey)
	case n.failed() && n.Status.Message != "":
		return n.Status.Message
	case part != "":
		return fmt.Sprintf("%s of %s: %s", text.Round(n.ms(attr.BiggestPartMSKey)), text.Round(n.took()), part)
	}
	return ""
}

// cause is the verdict in few words, of which there are few: the judge's, else what most of
// the time went into. Empty if nothing is known.
func (n *node) cause() string {
	if cause := n.text(attr.CauseKey); cause != "" {
		return cause
	}
	return unvaried(n.text(attr.BiggestPartKey))
}

// unvaried cuts off what differs between calls whose time went into the same: how often, and
// who was in the way.
func unvaried(part string) string {
	for _, varies := range []string{", held by ", ", for ", ", refused "} {
		part, _, _ = strings.Cut(part, varies)
	}
	if i := strings.LastIndex(part, " ("); i >= 0 && strings.HasSuffix(part, " times)") {
		part = part[:i]
	}
	return part
}

// problem tells whether a call needs looking at.
func (n *node) problem() bool { return n.failed() || n.slow() || n.is(attr.PartialKey) }
