package trace

import (
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

type request struct {
	*model.Fact
	*model.Request
}

func (d *drawing) query(f *model.Fact) {
	if d.long(f) {
		d.request(d.where, request{f, f.What.(*model.Request)})
	}
}

// change draws a change. An interface's changes are below one span; others, and a command's, below the image.
func (d *drawing) change(f *model.Fact) {
	r := request{f, f.What.(*model.Request)}
	where, of := d.where, d.span
	if key := interfaceOf(r); key != "" && (d.image.Run != nil || d.agent != "") {
		g := d.groups[key]
		if g == nil {
			g = d.group(r, key)
		}
		where, of = d.where.under(g), g
	}
	if d.long(f) {
		d.request(where, r)
		return
	}
	d.happened(of, d.nameOf(r), r.When.End, aboutRequest(r)...)
}

func (d *drawing) group(first request, key string) *tracepb.Span {
	when, n := first.When, 0
	for f, r := range model.Each[*model.Request](d.image.Facts) {
		if r := (request{f, r}); !r.Query() && interfaceOf(r) == key {
			when.Start, when.End = min(when.Start, r.When.Start), max(when.End, r.When.End)
			n += max(1, r.Count)
		}
	}
	s := d.child(d.where, "configure interface", attr.KindInterface, when, nonZero(
		semconv.NetworkInterfaceNameKey.String(first.On),
		attr.NetNSInode(first.NetNS.Label),
		attr.InterfaceIndex(int(first.Interface.Index)),
		attr.Changes(n),
	)...)
	add(s, aboutAttribution(first.Attribution)...)
	s.Links = d.perhaps(first.Attribution)
	if d.groups == nil {
		d.groups = map[string]*tracepb.Span{}
	}
	d.groups[key] = s
	return s
}

// interfaceOf returns an interface's key by name, else index, and evidence of agents' changes.
func interfaceOf(r request) string {
	evidence := ""
	if r.Attribution != nil {
		evidence = string(r.Attribution.Evidence)
	}
	switch {
	case r.On != "":
		return r.NetNS.Key + " " + r.On + " " + evidence
	case r.Interface.Index != 0:
		return fmt.Sprint(r.NetNS.Key, " #", r.Interface.Index, " ", evidence)
	}
	return ""
}

func (d *drawing) request(where at, r request) {
	s := d.child(where, d.nameOf(r), attr.KindRequest, r.When, aboutRequest(r)...)
	s.Links = d.perhaps(r.Attribution)
	if r.Failed() {
		d.fail(s, refusal(r), r.Errno())
	}
}

func (d *drawing) nameOf(r request) string {
	switch r.Protocol {
	case "ioctl", "iptables":
		return r.Protocol + " " + d.requests.Limit(r.Name, "request")
	case "bpf":
		return d.requests.Limit(programName(r), "bpf request")
	}
	return "netlink " + d.requests.Limit(r.Name, "request")
}

// programName names a bpf request: "load program cil_from_contai (sched_cls)".
func programName(r request) string {
	verbs := map[event.Verb]string{event.VerbAdd: "attach", event.VerbChange: "replace", event.VerbDelete: "detach"}
	what := verbs[r.Verb] + " program"
	switch r.Object {
	case event.ObjectProgram:
		what = "load program"
	case event.ObjectMap:
		what = "create map"
	case event.ObjectPin:
		what = "pin"
	}
	if r.Program != "" {
		what += " " + r.Program
	}
	if r.Type != "" {
		what += " (" + r.Type + ")"
	}
	return what
}

func refusal(r request) string {
	said := r.Errno()
	if r.Answer != nil && r.Answer.Message != "" {
		said += ": " + r.Answer.Message
	}
	return said
}

func aboutRequest(r request) []attribute.KeyValue {
	of := r.Interface
	kvs := slices.Clone(nonZero(
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
		attr.ProgramName(r.Program),
		attr.ProgramType(r.Type),
		attr.ProgramPath(r.Path),
		attr.NetNSInode(r.NetNS.Label),
		attr.InterfaceIndex(int(of.Index)),
		attr.InterfaceMasterIndex(int(of.Master)),
		attr.InterfaceMTU(int(of.MTU)),
		attr.RequestPort(int(r.Port)),
		attr.RequestSequence(int(r.Sequence)),
	))
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
