package show

import (
	"fmt"

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
	return n.text(attr.BiggestPartNameKey)
}

// problem tells whether a call needs looking at.
func (n *node) problem() bool { return n.failed() || n.slow() || n.is(attr.PartialKey) }
