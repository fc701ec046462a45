package trace

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/timeline"
)

// work draws below a call of a server what that one did meanwhile. s is the call's span.
func (i *insider) work(s *tracepb.Span, work *timeline.Work) {
	if work == nil {
		return
	}
	s.Attributes = append(s.Attributes, keyValue(attr.AgentCPUMS(time.Duration(work.CPU))))
	if work.Channel != "" {
		s.Attributes = append(s.Attributes, keyValue(attr.AgentWaitsIn(work.Channel)))
	}
	s.Attributes = append(s.Attributes, keyValues(aboutInside(work.Own))...)
	if work.Gone != 0 {
		i.happened(s, "the agent ended", work.Gone)
	}
	below := i.outer
	below.remote = false
	copy(below.parent[:], s.SpanId)
	for n, im := range []*timeline.Image{work.Own, work.Shared} {
		for _, child := range im.Children {
			i.writer.image(below, child, i.run, i.failing)
		}
		in := &insider{writer: i.writer, image: im, outer: below, span: s, run: i.run, failing: i.failing, salt: fmt.Sprint(" work ", n)}
		in.draw()
	}
}

// aboutAttribution says why something that a server ran is drawn here.
func aboutAttribution(a *timeline.Attribution) []attribute.KeyValue {
	if a == nil {
		return nil
	}
	return append(
		[]attribute.KeyValue{attr.Attribution(string(a.Evidence))},
		nonZero(attr.Periodic(a.Periodic), attr.OtherCalls(len(a.Others)))...)
}

// perhaps links to the calls that something may have been done for as well.
func (w *writer) perhaps(a *timeline.Attribution) (links []*tracepb.Span_Link) {
	if a == nil {
		return nil
	}
	for _, other := range a.Others {
		links = append(links, link(w.ids.of(other), "may be for this call"))
	}
	return links
}

// aboutPeer is who was called. network.* as semantic conventions say: of a unix socket the
// address is its path.
func aboutPeer(c *timeline.Connection) []attribute.KeyValue {
	host, port := c.Address, 0
	if i := strings.LastIndexByte(c.Address, ':'); c.Network != "unix" && i >= 0 {
		if n, err := strconv.ParseUint(c.Address[i+1:], 10, 16); err == nil {
			host, port = strings.Trim(c.Address[:i], "[]"), int(n)
		}
	}
	kvs := nonZero(
		semconv.NetworkTransportKey.String(c.Network),
		semconv.NetworkPeerAddress(host),
		semconv.ServerAddress(host),
		attr.Errno(c.Error),
	)
	if port != 0 {
		kvs = append(kvs, semconv.NetworkPeerPort(port), semconv.ServerPort(port))
	}
	if c.Tries > 1 {
		kvs = append(kvs, attr.Tries(c.Tries))
	}
	if c.Server == nil {
		return kvs
	}
	return append(kvs, nonZero(
		attr.Agent(c.Server.Name),
		attr.AgentPID(int(c.Server.PID)),
		attr.AgentListens(!c.Answered),
	)...)
}
