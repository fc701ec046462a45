// Package page tests the page of `cniscope show --html` in a real browser: with a keyboard, with axe, and on paper.
package page

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/cniscope/cniscope/test/harness"
)

type browser struct {
	context.Context
	t        *testing.T
	mu       sync.Mutex
	requests []string
	said     []string
}

// open shows a page in a new browser, or skips the test without Chromium.
func open(t *testing.T, html []byte) *browser {
	t.Helper()
	chromium := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			chromium = path
			break
		}
	}
	if chromium == "" {
		t.Skip("Chromium is not installed: make test-html")
	}
	file := filepath.Join(t.TempDir(), "page.html")
	harness.Check(t, os.WriteFile(file, html, 0o600))
	// Chromium looks for updates and experiments on the internet by default.
	allocator, stop := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium), chromedp.Env("TMPDIR="+t.TempDir()), chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1400, 1000),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-quic", true))...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator, chromedp.WithErrorf(t.Logf))
	t.Cleanup(cancel)
	b := &browser{Context: ctx, t: t}
	harness.Check(t, chromedp.Listen(ctx, b.listen))
	b.do(chromedp.Navigate("file://"+file), chromedp.WaitReady(chromedp.CSS("main")))
	return b
}

func (b *browser) listen(e any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := e.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *runtime.EventConsoleAPICalled:
		b.said = append(b.said, string(e.Type))
	case *runtime.EventExceptionThrown:
		b.said = append(b.said, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		b.said = append(b.said, e.Entry.Text)
	}
}

func (b *browser) heard() (requests, said []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests), slices.Clone(b.said)
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	result(b, chromedp.Steps(actions...))
}

func result[T any](b *browser, action chromedp.Action[T]) T {
	b.t.Helper()
	var v T
	if _, err := chromedp.Run(b, chromedp.Func(func(ctx context.Context, target *chromedp.Target) (err error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		v, err = action(ctx, target)
		return err
	})); err != nil {
		b.t.Fatal(err)
	}
	return v
}

func ask[T any](b *browser, expression string) T {
	b.t.Helper()
	return result(b, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

func (b *browser) text(selector string) string {
	b.t.Helper()
	return strings.Join(strings.Fields(ask[string](b, fmt.Sprintf("document.querySelector(%q).innerText", selector))), " ")
}

// screenshot saves a screenshot in the directory CNISCOPE_SCREENSHOTS, if set.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	if os.Getenv("CNISCOPE_SCREENSHOTS") != "" {
		keep(b.t, name+".png", result(b, chromedp.FullScreenshot(100)))
	}
}

func keep(t *testing.T, name string, data []byte) {
	t.Helper()
	if dir := os.Getenv("CNISCOPE_SCREENSHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Error(err)
		}
	}
}

func cniscope(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	var out, diagnostics bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diagnostics
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, diagnostics.String())
	}
	return out.Bytes()
}

var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "cniscope-page-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "cniscope")
	if out, err := exec.Command("go", "build", "-o", program, "../../plugin/cniscope").CombinedOutput(); err != nil {
		panic(string(out))
	}
	return m.Run()
}
