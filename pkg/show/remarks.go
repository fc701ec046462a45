package show

import (
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/text"
)

func (n *node) remarks() (all []string) {
	remark := func(is bool, s string) {
		if is {
			all = append(all, s)
		}
	}
	remark(n.text(attr.SignalKey) != "", "killed by "+n.text(attr.SignalKey))
	remark(n.number(semconv.ProcessExitCodeKey) != 0, "exit "+text.ExitCode(uint32(n.number(semconv.ProcessExitCodeKey))))
	remark(n.about() != "", n.about())
	remark(n.kind() != attr.KindRequest && n.text(attr.ErrnoKey) != "", n.text(attr.ErrnoKey))
	remark(n.found() != "", n.found())
	remark(n.kind() != attr.KindAgent && n.text(attr.AgentKey) != "", "by "+n.text(attr.AgentKey))
	remark(n.evidence() != "", n.evidence())
	remark(n.is(attr.UnaskedKey), "sent data without a request")
	remark(n.is(attr.ReceiptKey), "may be only an acknowledgment")
	remark(n.is(attr.ClippedKey), "began earlier")
	remark(n.is(attr.OutlivedKey), "outlived its plugin")
	remark(n.is(attr.UnfinishedKey), "still running")
	remark(n.is(attr.EndUnseenKey), "end not seen")
	remark(n.is(attr.UnidentifiedKey), "gone before it was looked at")
	remark(n.is(attr.InFlightAtStartKey), "running before cniscope")
	remark(n.covered() != "", n.covered())
	remark(n.endings() != "", n.endings())
	remark(n.series(), "the longest "+text.Round(n.longest()).String())
	return all
}

func (n *node) about() string {
	switch n.kind() {
	case attr.KindInterface:
		return n.named() + "  " + text.Count(int(n.number(attr.ChangesKey)), "change")
	case attr.KindRequest:
		return n.words(semconv.NetworkInterfaceNameKey, attr.AddressKey, attr.RouteKey, attr.RuleTableKey,
			attr.ErrnoKey, attr.RequestMessageKey)
	case attr.KindLock:
		return n.words(attr.LockPathKey, attr.LockNameKey) + n.holder()
	case attr.KindSysctl:
		return strings.Join(strings.Fields(n.text(attr.SysctlKeyKey)+" = "+n.text(attr.SysctlValueKey)), " ")
	case attr.KindDAD:
		return n.words(semconv.NetworkInterfaceNameKey, attr.AddressKey, attr.AddressStateKey)
	case attr.KindAgent:
		said := n.words(attr.AgentKey, semconv.NetworkPeerAddressKey)
		if tries := n.number(attr.TriesKey); tries > 1 {
			said += fmt.Sprintf("  %d attempts", tries)
		}
		return said
	case attr.KindWait:
		return n.words(attr.PolledPathKey, attr.SystemCallKey)
	case attr.KindFirstConnection:
		return fmt.Sprintf("%s after the end of the call", text.Round(n.ms(attr.FirstConnectionMSKey)))
	}
	return n.own()
}

func (n *node) evidence() string {
	if n.text(attr.AttributionKey) != "candidate" {
		return ""
	}
	said := "unconfirmed"
	if n.is(attr.PeriodicKey) {
		said = "unconfirmed, periodic"
	}
	if others := int(n.number(attr.OtherCallsKey)); others > 0 {
		said += ": for this call or " + text.OneOf(others)
	}
	return said
}

// found lists an agent's states that cover a tenth of the time, without idleness.
func (n *node) found() string {
	var all []string
	for _, state := range []struct {
		key  attribute.Key
		says string
	}{
		{attr.AgentStoppedMSKey, "stopped"},
		{attr.AgentFrozenMSKey, "frozen"},
		{attr.AgentUninterruptibleMSKey, "uninterruptible"},
		{attr.AgentRunningMSKey, "on a CPU"},
		{attr.AgentWaitingMSKey, "waiting"},
	} {
		if took := n.ms(state.key); took > 0 && took >= n.took()/10 {
			all = append(all, state.says+" for "+text.Round(took).String())
		}
	}
	return strings.Join(all, ", ")
}

func (n *node) own() string {
	var all []string
	for _, a := range n.Attributes {
		if !strings.HasPrefix(a.Key, "cniscope."+n.kind()+".") {
			continue
		}
		all = append(append(all, a.Value.GetStringValue()), list(a.Value)...)
	}
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), " ")
}

func (n *node) named() string {
	if name := n.text(semconv.NetworkInterfaceNameKey); name != "" {
		return name
	}
	return fmt.Sprintf("ifindex %d", n.number(attr.InterfaceIndexKey))
}

func (n *node) holder() string {
	who := n.text(attr.LockHolderNameKey)
	if pid := n.number(attr.LockHolderPIDKey); pid != 0 {
		who = strings.TrimSpace(fmt.Sprintf("%s (pid %d)", who, pid))
	}
	if who == "" {
		return ""
	}
	said := "  held by " + who
	if age := n.ms(attr.LockHolderAgeMSKey); age > 0 {
		if said += " for "; !n.is(attr.LockHolderAgeExactKey) {
			said += "at least "
		}
		said += text.Round(age).String()
	}
	return said
}
