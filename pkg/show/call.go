package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/text"
)

func pod(call *node) string {
	if name := call.text(semconv.K8SNamespaceNameKey) + "/" + call.text(semconv.K8SPodNameKey); name != "/" {
		return name
	}
	return "no pod"
}

func what(call *node) string {
	return strings.TrimSpace(call.Name + " " + call.text(attr.CNIIfNameKey))
}

// later is how long after its end the pod had its first connection; empty if it had none
// while the operation was open.
func (n *node) later() string {
	if n.attrs[attr.FirstConnectionMSKey] == nil {
		return ""
	}
	return text.Round(n.ms(attr.FirstConnectionMSKey)).String()
}

// slow reports whether a call, or something in it, took too long.
func (n *node) slow() bool {
	return n.is(attr.SlowKey) || slices.ContainsFunc(slowThings(), func(s slowThing) bool { return n.number(s.key) > 0 })
}

// slowThing is what may be slow in a call, as the call's span counts it.
type slowThing struct {
	key  attribute.Key
	name string
}

func slowThings() []slowThing {
	return []slowThing{
		{attr.SlowCommandsKey, "slow command"}, {attr.SlowAgentsKey, "slow agent call"}, {attr.SlowLocksKey, "slow lock wait"},
	}
}

// verdict is what is to be said of a call in one sentence: the judge's, else what failed,
// else where most of its time went. Empty if nothing is known.
func (n *node) verdict() string {
	if n.failed() {
		return cmp.Or(n.text(attr.VerdictKey), n.Status.Message, n.biggestPart())
	}
	return cmp.Or(n.text(attr.VerdictKey), n.biggestPart())
}

// biggestPart is where most of a call's time went, in a sentence; empty if that is not known.
func (n *node) biggestPart() string {
	part := n.text(attr.BiggestPartKey)
	if part == "" {
		return ""
	}
	return fmt.Sprintf("%s of %s: %s", text.Round(n.ms(attr.BiggestPartMSKey)), text.Round(n.took()), part)
}

// cause is the verdict in few words, of which there are few: the judge's, else what most of
// the time went into. Empty if nothing is known.
func (n *node) cause() string {
	return cmp.Or(n.text(attr.CauseKey), n.text(attr.BiggestPartNameKey))
}

// problem reports whether a call needs looking at.
func (n *node) problem() bool { return n.failed() || n.slow() || n.is(attr.PartialKey) }
