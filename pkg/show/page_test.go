package show

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"golang.org/x/net/html"

	"github.com/cniscope/cniscope/test/harness"
)

// parsed parses a page like a browser.
func parsed(t *testing.T, calls ...span) (*html.Node, string) {
	t.Helper()
	var b strings.Builder
	harness.Check(t, Page(&b, pods(calls...), PageOptions{All: true}))
	doc := harness.Must(html.Parse(strings.NewReader(b.String())))(t)
	return doc, b.String()
}

// find returns elements by tag and, if given, class.
func find(n *html.Node, tag, class string) (all []*html.Node) {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == tag &&
			(class == "" || slices.Contains(strings.Fields(value(d, "class")), class)) {
			all = append(all, d)
		}
	}
	return all
}

func value(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func read(n *html.Node) string {
	var words []string
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			words = append(words, strings.Fields(d.Data)...)
		}
	}
	return strings.Join(words, " ")
}

func TestThePageBeginsWithTheVerdict(t *testing.T) {
	slow := add(5100).with(attribute.Bool("cniscope.slow", true), attribute.Float64("cniscope.slow_threshold_ms", 2000),
		attribute.String("cniscope.verdict",
			"4.9s of 5.1s: waiting for /run/xtables.lock, held by kube-proxy (pid 812)"), attribute.String("cniscope.cause", "lock"))
	slower := slow.with()
	slower.to = 6000
	for name, c := range map[string]struct {
		calls     []span
		want, who string
	}{
		"slow": {
			[]span{add(100), slow},
			"! Slow 4.9s of 5.1s: waiting for /run/xtables.lock, held by kube-proxy (pid 812)", "shop/web-1 · CNI ADD eth0 · 5.1s",
		},
		"failed comes first": {[]span{slow, add(3).failing("bridge exited 1"), add(4000).
			with(attribute.Bool("cniscope.partial", true))}, "✗ Failed bridge exited 1", "shop/web-1 · CNI ADD eth0 · 3ms"},
		"the slowest": {
			[]span{slow, slower},
			"! Slow 4.9s of 5.1s: waiting for /run/xtables.lock, held by kube-proxy (pid 812)", "shop/web-1 · CNI ADD eth0 · 6s",
		},
		"nothing": {
			[]span{add(100), add(200)},
			"Nothing was slow, and nothing failed",
			"The slowest call: shop/web-1 · CNI ADD eth0 ·",
		},
		"no call": {nil, "No CNI call was recorded", ""},
	} {
		t.Run(name, func(t *testing.T) {
			doc, _ := parsed(t, c.calls...)
			harness.Equal(t, read(find(doc, "h1", "")[0]), c.want)
			who := ""
			if p := find(doc, "p", "who"); len(p) > 0 {
				who = read(p[0])
			}
			harness.Equal(t, who, c.who)
		})
	}
}

func TestRowsAreWhereTheSpansWere(t *testing.T) {
	doc, _ := parsed(t, add(1000, append(runs(4, "iptables", 100), run("sleep", 500, 1000).
		with(attribute.Bool("cniscope.slow", true), attribute.Float64("cniscope.slow_threshold_ms", 250)))...))
	rows := find(doc, "summary", "")
	var got []string
	for _, row := range rows {
		svg := find(row, "svg", "bar")
		if len(svg) == 0 {
			continue
		}
		line := read(row)
		for _, rect := range find(svg[0], "rect", "") {
			line += " " + value(rect, "x") + "+" + value(rect, "width")
		}
		got = append(got, line)
	}
	equal(t, strings.Join(got, "\n"), `
bridge ADD 1s , begins after 0s 0.00%+100.00%
iptables ×4 400ms , begins after 0s 0.00%+10.00% 10.00%+10.00% 20.00%+10.00% 30.00%+10.00%
iptables 100ms , begins after 0s 0.00%+10.00%
iptables 100ms , begins after 100ms 10.00%+10.00%
iptables 100ms , begins after 200ms 20.00%+10.00%
iptables 100ms , begins after 300ms 30.00%+10.00%
! sleep 500ms , begins after 500ms slow: more than 250ms 50.00%+50.00%`)
}

// Foreign text in names is never markup.
func TestForeignTextIsText(t *testing.T) {
	for _, hostile := range []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</style><script>alert(1)</script>`,
		`javascript:alert(1)`, `' onmouseover='alert(1)`, `{{.Style}}`, `]]><svg onload=alert(1)>`, "<!--", `</title></head><body onload=alert(1)>`,
		`x slow" style="position:fixed`,
	} {
		doc, source := parsed(t, add(1000, run(hostile, 0, 900).with(
			attribute.String("cniscope.kind", hostile), attribute.String(hostile, hostile), attribute.String("cniscope.signal",
				hostile),
		)).failing(hostile).with(
			attribute.String("k8s.pod.name", hostile), attribute.String("cniscope.verdict",
				hostile), attribute.String("cniscope.cause", hostile),
			attribute.String("cniscope.partial_reason", hostile), attribute.String("cni.name",
				hostile), attribute.String("cni.ifname", hostile),
		))
		for d := range doc.Descendants() {
			if d.Type == html.CommentNode {
				t.Errorf("%q became a comment", hostile)
			}
			if d.Type != html.ElementNode {
				continue
			}
			if slices.Contains([]string{"script", "img", "iframe", "link", "object", "base", "form"}, d.Data) {
				t.Errorf("%q became an element %s", hostile, d.Data)
			}
			for _, a := range d.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "src" || a.Key == "href" &&
					!strings.HasPrefix(a.Val, "#call-") {
					t.Errorf("%q became an attribute %s=%q", hostile, a.Key, a.Val)
				}
			}
		}
		if !strings.Contains(read(find(doc, "h1", "")[0]), strings.Join(strings.Fields(hostile), " ")) {
			t.Errorf("%q is not to be read: %s", hostile, read(find(doc, "h1", "")[0]))
		}
		harness.Equal(t, strings.Count(source, "<style"), 1, hostile, "styles")
	}
}

// A page is bounded; missing calls are counted, and problems have priority.
func TestAPageIsBounded(t *testing.T) {
	var calls []span
	for range 12 {
		calls = append(calls, add(1000, runs(2000, "iptables", 0.5)...))
	}
	calls = append(calls, add(1).failing("bridge exited 1"))
	doc, source := parsed(t, calls...)
	harness.Equal(t, len(find(doc, "article", "failed")), 1, "the call that failed is not there")
	warnings := find(doc, "p", "warning")
	if len(warnings) != 1 || !strings.HasPrefix(read(warnings[0]), "2 more calls are left out") {
		t.Errorf("%d warnings", len(warnings))
	}
	if mib := len(source) >> 20; mib > 40 {
		t.Errorf("%d MiB", mib)
	}
	fmt.Fprintln(t.Output(), len(source), "bytes")
}

// Of 5,000 calls the page draws the worst hundred, failed and slow, and the causes' examples.
func TestAPageOfVeryManyCalls(t *testing.T) {
	slow := add(2500, run("sleep", 0, 2400)).
		with(attribute.Bool("cniscope.slow", true), attribute.Float64("cniscope.slow_threshold_ms", 2000),
			attribute.String("cniscope.verdict", "2.4s of 2.5s: plugin bridge slept"), attribute.String("cniscope.cause",
				"sleep"), attribute.Float64("cniscope.time.sleep_ms", 2400))
	var calls []span
	for i := range 5000 {
		switch i % 12 {
		case 0:
			calls = append(calls, slow)
		case 1:
			calls = append(calls, add(50).failing("bridge exited 1"))
		default:
			calls = append(calls, add(50, runs(20, "iptables", 2)...))
		}
	}
	var b strings.Builder
	harness.Check(t, Page(&b, pods(calls...), PageOptions{}))
	doc := harness.Must(html.Parse(strings.NewReader(b.String())))(t)
	if failed, slow := len(find(doc, "article", "failed")), len(find(doc, "article", "slow")); failed != 50 || slow != 50 {
		t.Errorf("%d that failed, %d that were slow", failed, slow)
	}
	ids := map[string]bool{}
	for d := range doc.Descendants() {
		ids[value(d, "id")] = true
	}
	for _, a := range find(doc, "a", "") {
		if to := strings.TrimPrefix(value(a, "href"), "#"); !ids[to] {
			t.Errorf("a link leads to %s, which is not there", to)
		}
	}
	if n := len(b.String()); n > 1<<20 {
		t.Errorf("%d bytes", n)
	}
	if nav := read(find(doc, "nav", "")[0]); !strings.HasSuffix(nav, "… and 734 more, which --all shows.") {
		t.Error(nav[len(nav)-80:])
	}
	if got := read(find(doc, "p", "unshown")[0]); !strings.HasPrefix(got, "4166 more calls, neither slow nor failed, are") {
		t.Error(got)
	}
}

func TestAPageOfOrdinaryCalls(t *testing.T) {
	for n, want := range map[int]int{1: 1, 40: slowestMost} {
		var calls []span
		for i := range n {
			calls = append(calls, add(float64(10+i)))
		}
		var b strings.Builder
		harness.Check(t, Page(&b, pods(calls...), PageOptions{}))
		doc := harness.Must(html.Parse(strings.NewReader(b.String())))(t)
		harness.Equal(t, len(find(doc, "details", "call")), want, "shown of", n, "calls")
	}
}

// The last label needs the room of two.
func TestTheAxisHasRoomForItsLabels(t *testing.T) {
	call := &pageCall{head: head{took: 160300 * time.Microsecond}}
	harness.EqualSlices(t, call.Ticks(), []string{"0s", "40.1ms", "80.2ms", "160.3ms"})
}
