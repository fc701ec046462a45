package page

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/cniscope/cniscope/test/harness"
)

const threePods = "../../examples/recordings/three-pods.rec"

func recorded(t *testing.T) *browser {
	t.Helper()
	return open(t, cniscope(t, "show", "--html", threePods))
}

func TestTheFirstLineIsTheVerdict(t *testing.T) {
	b := recorded(t)
	first, _, _ := strings.Cut(b.text("body"), " shop/broken-0 ")
	if want := "✗ Failed plugin policy failed (code 11): \"no policy for this pod\"; its last command, policyctl, exited 3"; first != want {
		t.Errorf("%q, want %q", first, want)
	}
	for selector, want := range map[string]string{
		".who":                   "shop/broken-0 · CNI ADD eth0 · 160.3ms",
		".counts":                "12 calls of 3 pods: 1 failed, 1 slow",
		"nav li:nth-child(1)":    "✗ Failed shop/broken-0 CNI ADD eth0 160.3ms plugin policy failed (code 11): \"no policy for this pod\"; its last command, policyctl, exited 3",
		"nav li:nth-child(2)":    "! Slow shop/slow-0 CNI ADD eth0 2.22s 2.1s of 2.22s: plugin policy ran policyctl, which ran sleep",
		"article.slow h3":        "shop/slow-0 CNI ADD eth0 2.22s ! Slow more than 2s 2 slow commands",
		"article.slow .row.slow": "! policyctl 2.1s , begins after",
	} {
		got := b.text(selector)
		if selector == "article.slow .row.slow" {
			got, want = got[:len("! policyctl 2.1s")], want[:len("! policyctl 2.1s")]
		}
		harness.Equal(t, got, want, selector)
	}
	if title := ask[string](b, "document.title"); !strings.HasPrefix(title, "shop/broken-0: plugin policy failed (code 11)") {
		t.Errorf("title %q", title)
	}
	b.screenshot("light")
}

func TestTheBarComesBeforeTheList(t *testing.T) {
	b := recorded(t)
	harness.Equal(t, b.text("#spent"), "Where the time of all calls went 3.2s")
	lost, remedy, found := strings.Cut(b.text(".spent li"), " → ")
	if want := "68 % slow command 2.17s, all in shop/slow-0 CNI ADD eth0"; lost != want || !found {
		t.Errorf("%q, want %q", lost, want)
	}
	if got, want := b.text("article.slow .remedy"), "→ What to do: "+remedy; got != want || remedy == "" {
		t.Errorf("%q, want %q", got, want)
	}
	widths := ask[float64](b, "[...document.querySelectorAll('.whole rect')].reduce((sum, r) => sum + r.width.baseVal.valueInSpecifiedUnits, 0)")
	if widths < 99 || widths > 101 {
		t.Errorf("the bar's segments are %v %% of it", widths)
	}
	if !ask[bool](b, "document.querySelector('.whole').getBoundingClientRect().bottom < 450") {
		t.Error("the bar is not seen at a glance")
	}
}

// Ordinary calls need --all.
func TestWhatIsOrdinaryIsLeftOut(t *testing.T) {
	b := recorded(t)
	harness.Equal(t, ask[int](b, "document.querySelectorAll('.call').length"), 2, "calls")
	harness.Equal(t, b.text(".unshown"), "10 more calls, neither slow nor failed, are not on this page; --all shows every call.")
}

func TestEveryCallIsThere(t *testing.T) {
	b := open(t, cniscope(t, "show", "--html", "--all", threePods))
	harness.Equal(t, ask[int](b, "document.querySelectorAll('article.call').length"), 2, "calls that need looking at")
	harness.Equal(t, ask[int](b, "document.querySelectorAll('details.call:not([open])').length"), 10, "others")
	lines := cniscope(t, "show", "--all", "--all-commands", "--pod", "shop/slow-0", threePods)
	want := strings.Count(string(lines), "│") / 2
	rows := ask[int](b, `[...document.querySelectorAll('.call')].filter(c => c.innerHTML.includes('shop/slow-0'))
		.flatMap(c => [...c.querySelectorAll('.row')]).filter(r => !r.querySelector('.row')).length`)
	harness.Equal(t, rows, want, "rows")
}

// A page must not reveal to others that it was opened, and a tampered page must not run scripts.
func TestThePageLoadsAndRunsNothing(t *testing.T) {
	b := recorded(t)
	b.screenshot("first")
	requests, said := b.heard()
	if len(requests) != 1 || !strings.HasPrefix(requests[0], "file://") {
		t.Errorf("requests: %q", requests)
	}
	if len(said) > 0 {
		t.Errorf("console: %q", said)
	}
	if n := ask[int](b, "document.querySelectorAll('script, link, img, iframe, object, [style], [src]').length"); n != 0 {
		t.Errorf("%d elements that load, run or are styled by themselves", n)
	}
	// The content security policy holds: an injected script does not run.
	if ran := ask[bool](b, `(() => {
		const s = document.createElement('script'); s.textContent = 'window.ran = true'; document.body.append(s);
		const i = document.createElement('div'); i.innerHTML = '<img src=x onerror="window.ran = true">'; document.body.append(i);
		return new Promise(done => setTimeout(() => done(window.ran === true), 300));
	})()`); ran {
		t.Error("a foreign script ran")
	}
	if display := ask[string](b, "getComputedStyle(document.querySelector('.row > summary')).display"); display != "grid" {
		t.Errorf("the page has no style: %s", display)
	}
}

func TestByKeyboard(t *testing.T) {
	b := recorded(t)
	focused := func() string {
		return ask[string](b, "document.activeElement.innerText.replace(/\\s+/g, ' ').trim()")
	}
	tab := func(until string) {
		t.Helper()
		for range 100 {
			b.do(chromedp.KeyEvent(kb.Tab))
			if strings.HasPrefix(focused(), until) {
				if ask[string](b, "getComputedStyle(document.activeElement).outlineStyle") != "solid" {
					t.Errorf("%s: nobody sees that it has the focus", until)
				}
				return
			}
		}
		t.Fatalf("%q is not reached", until)
	}
	open := func() bool { return ask[bool](b, "document.activeElement.parentElement.open") }

	tab("! Slow shop/slow-0")
	b.do(chromedp.KeyEvent(kb.Enter))
	if top := ask[float64](b, "document.querySelector('article.slow').getBoundingClientRect().top"); top < 0 || top > 900 {
		t.Errorf("the link does not lead to the call: it is at %v", top)
	}
	tab("bridge ADD")
	tab("iptables ×11")
	b.do(chromedp.KeyEvent(kb.Enter))
	if !open() {
		t.Error("Enter does not open a row")
	}
	tab("iptables")
	harness.Equal(t, ask[int](b, "document.activeElement.closest('ol').children.length"), 11, "of 11 runs")
	b.do(chromedp.KeyEvent(" "))
	if !open() {
		t.Error("Space does not open a row")
	}
	if about := ask[string](b, "document.activeElement.parentElement.querySelector('.about').innerText"); !strings.Contains(about, "process.executable.path") {
		t.Errorf("about: %q", about)
	}
	b.screenshot("open")
	b.do(chromedp.KeyEvent(" "))
	if open() {
		t.Error("Space does not close a row")
	}
}

// In light and dark, wide and narrow, folded and open.
func TestAccessibility(t *testing.T) {
	axe, err := os.ReadFile(filepath.FromSlash("../tools/bin/axe/node_modules/axe-core/axe.min.js"))
	if err != nil {
		t.Skip("axe-core is not there: make test-html")
	}
	b := recorded(t)
	result(b, chromedp.Evaluate[chromedp.Void](string(axe)))
	for _, as := range []struct {
		scheme string
		width  int64
		opened bool
	}{{"light", 1400, false}, {"dark", 1400, true}, {"light", 380, true}, {"dark", 380, false}} {
		name := fmt.Sprint(as.scheme, "-", as.width, "-", as.opened)
		t.Run(name, func(t *testing.T) {
			b.do(prefers(as.scheme), chromedp.EmulateViewport(as.width, 1000))
			ask[bool](b, fmt.Sprintf("document.querySelectorAll('details').forEach(d => d.open = %v) === undefined", as.opened))
			found := ask[[]string](b, `axe.run({resultTypes: ['violations']}).then(r => r.violations.map(
				v => v.id + ': ' + v.help + ' ' + v.nodes.slice(0, 3).map(n => n.target + ' ' + n.failureSummary).join('; ')))`)
			for _, v := range found {
				t.Error(v)
			}
			if over := ask[int](b, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); over > 0 {
				t.Errorf("%d pixels are beyond the right edge", over)
			}
			b.screenshot(name)
		})
	}
}

func prefers(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}

// Slow and failed rows differ from others also without colors.
func TestNoSignIsAColourAlone(t *testing.T) {
	b := recorded(t)
	for _, state := range []string{"slow", "failed"} {
		rows := ask[[]string](b, fmt.Sprintf("[...document.querySelectorAll('.row.%s > summary')].map(r => r.innerText.replace(/\\s+/g, ' '))", state))
		harness.Equal(t, len(rows), 2, state, rows)
		for _, row := range rows {
			if !strings.Contains(row, state) || !strings.ContainsAny(row, "!✗") {
				t.Errorf("%s: %q does not say so", state, row)
			}
		}
	}
}

// On paper, the bars are visible.
func TestOnPaper(t *testing.T) {
	b := recorded(t)
	pdf := result(b, chromedp.PrintToPDF())
	if pages := strings.Count(string(pdf), "/Type /Page\n") + strings.Count(string(pdf), "/Type /Page "); len(pdf) < 10_000 || pages > 4 {
		t.Errorf("%d bytes, %d pages", len(pdf), pages)
	}
	keep(t, "paper.pdf", pdf)
}
