package show

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	// rowsMax bounds the rows of a page: 20 MB, which browsers still open.
	rowsMax = 20_000
	// problemsMax bounds listed problems, and drawn calls unless All.
	problemsMax = 100
	// pageMax is in bytes.
	pageMax = 64 << 20
	// slowestMost bounds the calls on a page without problems.
	slowestMost = 5
	originsMax  = 100
)

// PageOptions select a page's calls: All, or those with a problem or beyond Limits, else the slowest.
type PageOptions struct {
	All    bool
	Limits Limits
}

type page struct {
	PageOptions
	operations iter.Seq[*tracepb.ResourceSpans]
	// Up to problemsMax calls, worst first; problems counts all.
	Problems          []head
	byState           map[string][]head
	drawn             map[string]bool // by ID
	problems          int
	slowest           []head // without a problem, slowest first
	all, failed, slow int
	others, crossing  int
	account           *account
	pods              map[string]bool
	first, last       uint64
	origin            map[string]bool
	rows              int
	written           *int64 // bytes
	LeftOut           int
}

type head struct {
	ID, Pod, What, Took, Verdict, Cause, Remedy string
	State                                       string // failed, slow, partial, or empty
	took                                        time.Duration
}

func newPage(operations iter.Seq[*tracepb.ResourceSpans], o PageOptions) *page {
	p := &page{
		PageOptions: o, operations: operations, account: newAccount(), pods: map[string]bool{},
		byState: map[string][]head{}, drawn: map[string]bool{}, origin: map[string]bool{}, written: new(int64),
	}
	for rs := range operations {
		if len(p.origin) < originsMax {
			p.origin[origin(rs)] = true
		}
		for _, call := range calls(rs) {
			p.count(call)
		}
	}
	p.choose()
	return p
}

func problemStates() []string { return []string{"failed", "slow", "partial"} }

func (p *page) worst(state string) {
	slices.SortStableFunc(p.byState[state], func(a, b head) int { return cmp.Compare(b.took, a.took) })
	p.byState[state] = p.byState[state][:min(len(p.byState[state]), problemsMax)]
}

// choose gives failed calls up to half of the list if there are slow ones.
func (p *page) choose() {
	for i, state := range problemStates() {
		p.worst(state)
		after := 0
		for _, next := range problemStates()[i+1:] {
			after += len(p.byState[next])
		}
		left := problemsMax - len(p.Problems)
		p.Problems = append(p.Problems, p.byState[state][:min(len(p.byState[state]), max(left/2, left-after))]...)
	}
	for _, h := range p.Problems {
		p.drawn[h.ID] = true
	}
	for _, s := range p.account.spent {
		if s.Worst != nil {
			p.drawn[s.Worst.head.ID] = true
		}
	}
	if p.problems+p.crossing == 0 {
		for _, h := range p.slowest {
			p.drawn[h.ID] = true
		}
	}
}

func (p *page) count(call *node) {
	p.all++
	p.pods[pod(call)] = true
	if p.all == 1 {
		p.first = call.StartTimeUnixNano
	}
	p.first, p.last = min(p.first, call.StartTimeUnixNano), max(p.last, call.EndTimeUnixNano)
	p.account.add(call)
	h := headOf(call)
	switch h.State {
	case "failed":
		p.failed++
	case "slow":
		p.slow++
	case "":
		p.others++
		p.crossing += one(p.Limits.wants(call))
		p.slowest = append(p.slowest, h)
		slices.SortStableFunc(p.slowest, func(a, b head) int { return cmp.Compare(b.took, a.took) })
		p.slowest = p.slowest[:min(len(p.slowest), slowestMost)]
		return
	}
	p.problems++
	if p.byState[h.State] = append(p.byState[h.State], h); len(p.byState[h.State]) >= 2*problemsMax {
		p.worst(h.State)
	}
}

func origin(rs *tracepb.ResourceSpans) string {
	resource := attributes(rs.GetResource().GetAttributes())
	said := resource.words(semconv.ContainerRuntimeNameKey, semconv.ContainerRuntimeVersionKey)
	if name := resource.text(semconv.K8SNodeNameKey); name != "" {
		said = strings.TrimSuffix("node "+name+", "+said, ", ")
	}
	return said
}

func headOf(call *node) head {
	h := head{
		ID: idOf(call), Pod: pod(call), What: what(call),
		Took: text.Round(call.took()).String(), took: call.took(), Verdict: call.verdict(), Cause: call.text(attr.CauseKey),
		Remedy: call.text(attr.RemedyKey),
	}
	switch {
	case call.failed():
		h.State = "failed"
	case call.slow():
		h.State = "slow"
	case call.is(attr.PartialKey):
		h.State = "partial"
	}
	return h
}

func (h head) Mark() string { return mark(h.State) }

func mark(state string) string {
	switch state {
	case "failed":
		return "✗"
	case "slow", "partial":
		return "!"
	}
	return ""
}

func (p *page) Worst() head {
	if len(p.Problems) > 0 {
		return p.Problems[0]
	}
	if len(p.slowest) > 0 {
		return p.slowest[0]
	}
	return head{}
}

func (p *page) Empty() bool { return p.all == 0 }

func (p *page) shown(call *node) bool { return p.All || p.drawn[idOf(call)] || p.Limits.wants(call) }

func idOf(call *node) string { return "call-" + hex.EncodeToString(call.SpanId) }

func (p *page) Others() string {
	switch {
	case p.others == 0:
		return ""
	case p.All && p.problems > 0:
		return "The other calls"
	case p.All:
		return "The calls"
	case p.crossing > 0:
		return "What crossed a limit"
	case p.problems == 0:
		return "The slowest calls"
	}
	return ""
}

func (p *page) Unseen() int {
	switch {
	case p.All:
		return 0
	case p.problems+p.crossing == 0:
		return p.others - len(p.slowest)
	}
	return p.others - p.crossing
}

func (p *page) More() int { return p.problems - len(p.Problems) }

func (p *page) Counts() string {
	return fmt.Sprintf("%s of %s: %d failed, %d slow",
		text.Count(p.all, "call"), text.Count(len(p.pods), "pod"), p.failed, p.slow)
}

func (p *page) Origin() []string {
	if p.all == 0 {
		return nil
	}
	first, last := time.Unix(0, int64(p.first)).UTC(), time.Unix(0, int64(p.last)).UTC()
	until := last.Format(time.TimeOnly)
	if first.Format(time.DateOnly) != last.Format(time.DateOnly) {
		until = last.Format(time.DateTime)
	}
	all := []string{first.Format(time.DateTime) + " to " + until + " UTC"}
	switch where := slices.Sorted(maps.Keys(p.origin)); {
	case len(where) > 1:
		all = append(all, text.Count(len(where), "node"))
	case where[0] != "":
		all = append(all, where[0])
	}
	return all
}

//go:embed page.html
var pageTemplate string

//go:embed page.css
var pageStyle string

// Page writes a self-contained HTML page without scripts or requests. It iterates several times.
func Page(w io.Writer, operations iter.Seq[*tracepb.ResourceSpans], o PageOptions) error {
	t, err := template.New("page").Funcs(template.FuncMap{"steps": steps}).Parse(pageTemplate)
	if err != nil {
		return err
	}
	p := newPage(operations, o)
	buffered := bufio.NewWriter(&counter{w, p.written})
	if err := t.Execute(buffered, p); err != nil {
		return err
	}
	return buffered.Flush()
}

type counter struct {
	io.Writer
	n *int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	*c.n += int64(n)
	return n, err
}

// Style is the only style that Policy allows.
func (*page) Style() template.CSS { return template.CSS(pageStyle) }

func steps(remedy string) string { return strings.Trim(text.Steps("", remedy), "→ \n") }

// Policy allows only the page's style, in case escaping fails.
func (*page) Policy() string {
	hash := sha256.Sum256([]byte(pageStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) +
		"'; base-uri 'none'; form-action 'none'"
}
