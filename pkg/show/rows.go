package show

import (
	"cmp"
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
	"github.com/cniscope/cniscope/pkg/judge"
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

const restLeast = 0.01

type segment struct {
	// The color, the text if it fits, and its position.
	Class, Label, Middle string
	bar
}

type lost struct {
	Spent
	Class, Took, Percent string
	Worst                *head
}

type spent struct {
	Segments []segment
	Lost     []lost
	Few      *fewCauses
	Rest     string
	All      string
}

func (p *page) Spent() *spent {
	if p.account.total <= 0 {
		return nil
	}
	s := &spent{All: inMS(p.account.total).String()}
	at := 0.0
	all := named(p.account.list())
	for _, what := range all {
		class := "rest"
		if what.Cause != "" {
			class = "c" + strconv.Itoa(len(s.Lost)%causeColors)
			l := lost{Spent: what, Class: class, Took: inMS(what.Time).String(), Percent: share(what.Share)}
			if what.Worst != nil {
				l.Worst = &what.Worst.head
			}
			s.Lost = append(s.Lost, l)
		}
		s.Segments = append(s.Segments, segmentOf(what, class, at))
		at += what.Share
	}
	if rest := restOf(all); rest != "" {
		s.Rest = strings.ToUpper(rest[:1]) + rest[1:]
	}
	if more := len(s.Lost) - causesFirst; more > 1 {
		few := s.Lost[causesFirst:]
		sum := 0.0
		for _, l := range few {
			sum += l.Share
		}
		s.Few = &fewCauses{fmt.Sprintf("%s, %s together", text.Count(more, "more cause"), share(sum)), few}
		s.Lost = s.Lost[:causesFirst]
	}
	return s
}

var restNames = map[string]string{"network": "network configuration", "between runs": "between plugin runs"}

// named tells time without a cause from causes.
func named(all []Spent) []Spent {
	all = slices.Clone(all)
	listed := map[string]bool{}
	for _, s := range all {
		for _, a := range judge.Accounts() {
			if s.Cause != "" && slices.Contains(judge.Cause(s.Cause).About().Parts, a.Kind) {
				listed[partName(a.Time(0).Key)] = true
			}
		}
	}
	for i := range all {
		if s := &all[i]; s.Cause == "" {
			other := listed[s.Name]
			if s.Name = cmp.Or(restNames[s.Name], s.Name); other {
				s.Name = "other " + s.Name
			}
		}
	}
	return all
}

func restOf(all []Spent) string {
	var rest []string
	title := "time: "
	for _, s := range all {
		if s.Cause == "" && s.Share >= restLeast {
			rest = append(rest, s.Name+" "+share(s.Share))
		} else if s.Cause != "" {
			title = "other time: "
		}
	}
	if rest == nil {
		return ""
	}
	return title + strings.Join(rest, " · ")
}

type fewCauses struct {
	Title string
	Lost  []lost
}

const (
	causesFirst = 5 // shown at once
	causeColors = 6 // in page.css
)

// segmentOf returns a segment, with a label if it fits: 7 pixels per character of a bar of 900.
func segmentOf(what Spent, class string, at float64) segment {
	s := segment{
		Class: class, bar: bar{percent(100 * at), percent(100 * what.Share)},
		Middle: percent(100 * (at + what.Share/2)),
	}
	if label := what.Name + " " + share(what.Share); 900*what.Share > float64(7*len(label)+14) {
		s.Label = label
	}
	return s
}

func share(of float64) string {
	if of < 0.01 {
		return "<1 %"
	}
	return strconv.FormatFloat(100*of, 'f', 0, 64) + " %"
}
