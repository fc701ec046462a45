package show

import (
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/text"
)

type pageCall struct {
	head
	Slow, SlowCommands, Partial string
	Facts                       []Fact
	NeverRun                    []string
	call                        *node
	page                        *page
}

// Fact is a name and value.
type Fact struct{ Name, Value string }

// pageRow is a span or a series. Pale marks a series whose parts have unknown positions.
type pageRow struct {
	Name, Kind, Took, Start string
	State                   string // failed, slow, or empty
	Count                   int
	Depth                   int
	Pale                    bool
	Bars                    []bar
	Remarks                 []string
	Args                    string
	About                   []Fact
	Events                  []Fact
	// Rows folded into this row, and rows of child spans.
	Same, Below []*pageRow
}

// bar is in percent of the call.
type bar struct{ X, Width string }

func (r *pageRow) Mark() string { return mark(r.State) }

func (c *pageCall) Rows() []*pageRow { return c.rows(c.call.children, 0) }

func (c *pageCall) More() []Fact {
	return facts(c.call.attrs, func(key attribute.Key) bool { return key != attr.KindKey })
}

func (c *pageCall) Ticks() (all []string) {
	for _, i := range []int{0, 1, 2, 4} { // the last one needs the room of two
		all = append(all, text.Round(c.took*time.Duration(i)/4).String())
	}
	return all
}

func (c *pageCall) rows(nodes []*node, depth int) (rows []*pageRow) {
	for _, n := range fold(nodes) {
		row := c.row(n, depth)
		for _, same := range n.same {
			row.Same = append(row.Same, c.row(same, depth+1))
		}
		row.Below = c.rows(n.children, depth+1)
		rows = append(rows, row)
	}
	return rows
}

func (c *pageCall) row(n *node, depth int) *pageRow {
	c.page.rows++
	row := &pageRow{
		Name: n.rowName(), Kind: n.kind(), Took: text.Round(n.took()).String(), Count: n.count, Depth: min(depth, 8),
		Start: text.Round(time.Duration(max(0, int64(n.StartTimeUnixNano-c.call.StartTimeUnixNano)))).String(),
		Args:  strings.Join(n.arguments(), " "), Pale: n.series(),
	}
	row.Remarks = n.remarks()
	switch {
	case n.failed():
		row.State = "failed"
		row.Remarks = append([]string{"failed"}, row.Remarks...)
	case n.is(attr.SlowKey):
		row.State = "slow"
		row.Remarks = append([]string{fmt.Sprintf("slow: more than %s", n.ms(attr.SlowThresholdMSKey))}, row.Remarks...)
	}
	if len(n.same) > 0 {
		for _, same := range n.same {
			row.Bars = append(row.Bars, c.bar(same))
		}
		return row
	}
	row.Bars = []bar{c.bar(n)}
	row.About = facts(n.attrs, func(key attribute.Key) bool {
		return key != attr.KindKey && c.call.attrs[key] == nil || key == semconv.ErrorTypeKey
	})
	for _, e := range n.Events {
		at := time.Duration(int64(e.TimeUnixNano - c.call.StartTimeUnixNano))
		said := []string{"at " + text.Round(at).String()}
		for _, fact := range facts(attributes(e.Attributes), func(attribute.Key) bool { return true }) {
			said = append(said, fact.Name+" "+fact.Value)
		}
		row.Events = append(row.Events, Fact{e.Name, strings.Join(said, " · ")})
	}
	return row
}

func (c *pageCall) bar(n *node) bar {
	from, to := 100*c.call.until(n.StartTimeUnixNano), 100*c.call.until(n.EndTimeUnixNano)
	width := max(to-from, 0.25) // visible, however short
	return bar{percent(min(from, 100-width)), percent(width)}
}

func percent(p float64) string { return strconv.FormatFloat(p, 'f', 2, 64) + "%" }

func facts(attributes attrs, wanted func(attribute.Key) bool) (all []Fact) {
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		if wanted(key) {
			all = append(all, Fact{string(key), printed(attributes[key])})
		}
	}
	return all
}

func printed(v *commonpb.AnyValue) string {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_BoolValue:
		return strconv.FormatBool(v.BoolValue)
	case *commonpb.AnyValue_IntValue:
		return strconv.FormatInt(v.IntValue, 10)
	case *commonpb.AnyValue_DoubleValue:
		return strconv.FormatFloat(v.DoubleValue, 'f', -1, 64)
	case *commonpb.AnyValue_ArrayValue:
		items := make([]string, 0, len(v.ArrayValue.GetValues()))
		for _, item := range v.ArrayValue.GetValues() {
			items = append(items, printed(item))
		}
		return strings.Join(items, " ")
	}
	return ""
}

func (p *page) Calls(problems bool) iter.Seq[*pageCall] {
	return func(yield func(*pageCall) bool) {
		for rs := range p.operations {
			resource := attributes(rs.GetResource().GetAttributes())
			for _, call := range calls(rs) {
				if call.problem() != problems || !p.shown(call) {
					continue
				}
				if p.rows >= rowsMax || *p.written >= pageMax {
					p.LeftOut++
				} else if !yield(p.call(call, resource)) {
					return
				}
			}
		}
	}
}

func (p *page) call(call *node, resource attrs) *pageCall {
	c := &pageCall{head: headOf(call), call: call, page: p}
	c.Partial = call.text(attr.PartialReasonKey)
	if call.is(attr.SlowKey) {
		c.Slow = "more than " + call.ms(attr.SlowThresholdMSKey).String()
	}
	if n := call.number(attr.SlowCommandsKey); n > 0 {
		c.SlowCommands = text.Count(int(n), "slow command")
	}
	for _, name := range list(call.attrs[attr.NeverRunKey]) {
		c.NeverRun = append(c.NeverRun, name+" "+call.text(attr.CNICommandKey))
	}
	c.Facts = []Fact{{"started", time.Unix(0, int64(call.StartTimeUnixNano)).UTC().Format("2006-01-02 15:04:05.000 UTC")}}
	for _, fact := range []Fact{
		{"node", resource.text(semconv.K8SNodeNameKey)},
		{"network", call.text(attr.CNINameKey)},
		{"sandbox", call.text(attr.SandboxIDKey)},
		{"trace", hex.EncodeToString(call.TraceId)},
	} {
		if fact.Value != "" {
			c.Facts = append(c.Facts, fact)
		}
	}
	return c
}
