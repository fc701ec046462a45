package trace

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// work draws below a call of a server what that one did meanwhile. s is the call's span.
func (i *insider) work(s *tracepb.Span, work *timeline.Work) {
	if work == nil {
		return
	}
	s.Attributes = append(s.Attributes, keyValue(attribute.Float64("cniscope.agent_cpu_ms", ms(time.Duration(work.CPU)))))
	if work.Channel != "" {
		s.Attributes = append(s.Attributes, keyValue(attribute.String("cniscope.agent_waits_in", work.Channel)))
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
		if im.Inside != nil {
			in := &insider{writer: i.writer, image: im, outer: below, span: s, run: i.run, failing: i.failing, salt: fmt.Sprint(" work ", n)}
			in.draw()
		}
	}
}

// aboutAttribution says why something that a server ran is drawn here.
func aboutAttribution(a *timeline.Attribution) []attribute.KeyValue {
	if a == nil {
		return nil
	}
	kvs := []attribute.KeyValue{attribute.String("cniscope.attribution", string(a.Evidence))}
	if a.Periodic {
		kvs = append(kvs, attribute.Bool("cniscope.periodic", true))
	}
	if len(a.Others) > 0 {
		kvs = append(kvs, attribute.Int("cniscope.other_calls", len(a.Others)))
	}
	return kvs
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
	kvs := nonEmpty(
		attribute.String(string(semconv.NetworkTransportKey), c.Network),
		semconv.NetworkPeerAddress(host),
		semconv.ServerAddress(host),
		attribute.String(string(semconv.ErrorTypeKey), c.Error),
	)
	if port != 0 {
		kvs = append(kvs, semconv.NetworkPeerPort(port), semconv.ServerPort(port))
	}
	if c.Tries > 1 {
		kvs = append(kvs, attribute.Int("cniscope.tries", c.Tries))
	}
	if c.Server == nil {
		return kvs
	}
	kvs = append(kvs, nonEmpty(attribute.String("cniscope.agent", c.Server.Name))...)
	if c.Server.PID != 0 {
		kvs = append(kvs, attribute.Int("cniscope.agent_pid", int(c.Server.PID)))
	}
	if !c.Answered {
		kvs = append(kvs, attribute.Bool("cniscope.agent_listens", true))
	}
	return kvs
}
