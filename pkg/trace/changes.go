package trace

import (
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/timeline"
)

// changes makes the spans of what an image changed in the network: of a run one for each
// interface, with its changes below or in it, as of a server; of a command, which does little else, they
// are its own, as are those that concern no interface.
func (i *insider) changes() {
	var requests []request
	for f, r := range timeline.Each[*timeline.Request](i.image.Facts) {
		requests = append(requests, request{f, r})
	}
	groups := map[string]*group{}
	for at := range requests {
		r := requests[at]
		if r.Query() {
			if i.long(r.When) {
				i.request(i.where, r)
			}
			continue
		}
		key := interfaceOf(r)
		if i.image.Run == nil && i.salt == "" || key == "" {
			i.change(i.where, i.span, r)
			continue
		}
		g := groups[key]
		if g == nil {
			g = i.group(requests[at:], key)
			groups[key] = g
		}
		i.change(g.where, g.span, r)
	}
}

// request is a request as a fact.
type request struct {
	*timeline.Fact
	*timeline.Request
}

// group is the span of one interface, and below it.
type group struct {
	where at
	span  *tracepb.Span
}

// group makes the span of the interface that the first of requests is about.
func (i *insider) group(requests []request, key string) *group {
	first := requests[0]
	when, n := first.When, 0
	for at := range requests {
		if r := requests[at]; !r.Query() && interfaceOf(r) == key {
			when.Start, when.End = min(when.Start, r.When.Start), max(when.End, r.When.End)
			n += max(1, r.Count)
		}
	}
	about := nonZero(
		semconv.NetworkInterfaceNameKey.String(first.On),
		attr.NetNSInode(first.NetNS.Label),
		attr.InterfaceIndex(int(first.Interface.Index)),
	)
	s := i.child(i.where, "configure interface", attr.KindInterface, when, append(about, attr.Changes(n))...)
	below := i.where
	copy(below.parent[:], s.SpanId)
	return &group{below, s}
}

// interfaceOf tells interfaces apart: by name, where that is known, else by index. Empty
// for what is about none.
func interfaceOf(r request) string {
	switch {
	case r.On != "":
		return r.NetNS.Key + " " + r.On
	case r.Interface.Index != 0:
		return fmt.Sprint(r.NetNS.Key, " #", r.Interface.Index)
	}
	return ""
}

// change is a span if it took long, else an event of the span it belongs to.
func (i *insider) change(where at, of *tracepb.Span, r request) {
	if i.long(r.When) {
		i.request(where, r)
		return
	}
	i.happened(of, i.nameOf(r), r.When.End, aboutRequest(r)...)
}

func (i *insider) request(where at, r request) {
	s := i.child(where, i.nameOf(r), attr.KindRequest, r.When, aboutRequest(r)...)
	s.Links = append(s.Links, i.perhaps(r.Attribution)...)
	if r.Failed() {
		i.fail(s, refusal(r), r.Errno())
	}
}

func (i *insider) nameOf(r request) string {
	switch r.Protocol {
	case "ioctl", "iptables":
		return r.Protocol + " " + i.requests.Limit(r.Name, "request")
	}
	return "netlink " + i.requests.Limit(r.Name, "request")
}

func refusal(r request) string {
	said := r.Errno()
	if r.Answer != nil && r.Answer.Message != "" {
		said += ": " + r.Answer.Message
	}
	return said
}

// aboutRequest is what was to be changed, and what came of it.
func aboutRequest(r request) []attribute.KeyValue {
	of := r.Interface
	kvs := nonZero(
		attr.RequestProtocol(r.Protocol),
		attr.RequestName(r.Name),
		semconv.NetworkInterfaceNameKey.String(r.On),
		attr.InterfaceKind(of.Kind),
		attr.InterfacePeer(of.Peer),
		attr.InterfaceMaster(r.Under),
		attr.InterfaceState(of.State),
		attr.InterfaceMAC(of.MAC),
		attr.InterfaceNetNSInode(of.NetNS.Label),
		attr.InterfacePeerNetNSInode(of.PeerNetNS.Label),
		attr.Address(r.Address),
		attr.Route(r.Route),
		attr.Gateway(r.Gateway),
		attr.RuleTable(r.Table),
		attr.RuleChain(r.Chain),
		attr.NetNSInode(r.NetNS.Label),
		attr.InterfaceIndex(int(of.Index)),
		attr.InterfaceMasterIndex(int(of.Master)),
		attr.InterfaceMTU(int(of.MTU)),
		attr.RequestPort(int(r.Port)),
		attr.RequestSequence(int(r.Sequence)),
	)
	kvs = append(kvs, aboutAttribution(r.Attribution)...)
	if r.Count > 1 {
		kvs = append(kvs, attr.RequestCount(r.Count))
	}
	if errno := r.Errno(); errno != "" {
		kvs = append(kvs, attr.Errno(errno))
		if r.Answer != nil {
			kvs = append(kvs, nonZero(attr.RequestMessage(r.Answer.Message))...)
		}
	}
	return kvs
}
