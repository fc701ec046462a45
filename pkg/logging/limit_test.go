package logging

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(line []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(line)
}

func (o *output) lines() []string {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.text.Reset()
	return strings.Split(strings.TrimSuffix(o.text.String(), "\n"), "\n")
}

func written() (*slog.Logger, *Limit, func() []string) {
	out := &output{}
	limit := NewLimit(slog.NewTextHandler(out, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	return slog.New(limit), limit, out.lines
}

func TestALineCannotFloodTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, _, lines := written()
		for i := range 1000 {
			log.With("node", "n").Warn("CNI call failed", "pod", fmt.Sprint("evil-", i))
		}
		if got := lines(); len(got) != burst || strings.Contains(strings.Join(got, ""), "left_out") {
			t.Errorf("%d lines, the last: %s", len(got), got[len(got)-1])
		}
		log.Warn("another line")
		if got := lines(); len(got) != 1 || got[0] != `level=WARN msg="another line"` {
			t.Errorf("%q", got)
		}
		time.Sleep(interval)
		log.Warn("CNI call failed", "pod", "good")
		log.Warn("CNI call failed", "pod", "late")
		if got := lines(); len(got) != 1 || got[0] != `level=WARN msg="CNI call failed" pod=good left_out=980` {
			t.Errorf("%q", got)
		}
		time.Sleep(time.Hour)
		if got := lines(); len(got) != 1 ||
			got[0] != `level=WARN msg="log lines were left out" text="CNI call failed" left_out=1` {
			t.Errorf("%q", got)
		}
		for range 1000 {
			log.Warn("CNI call failed")
		}
		if got := lines(); len(got) != burst {
			t.Errorf("an hour later: %d lines", len(got))
		}
	})
}

func TestAFloodThatGoesOnIsALineASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, limit, lines := written()
		const events, gap = 60_000, time.Millisecond
		for range events {
			log.Error("a source panicked")
			time.Sleep(gap)
		}
		limit.Flush()
		got, sum := lines(), 0
		for _, line := range got {
			sum++
			var n int
			if _, after, ok := strings.Cut(line, "left_out="); ok {
				_, _ = fmt.Sscan(after, &n)
			}
			sum += n
			if strings.Contains(line, "were left out") {
				sum--
			}
		}
		if sum != events || len(got) > burst+61 {
			t.Errorf("%d lines account for %d of %d", len(got), sum, events)
		}
	})
}

func TestTextsWithoutEndShareOneBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, limit, lines := written()
		log.Warn("ours")
		for i := range 10_000 {
			log.Info(fmt.Sprint("TLS handshake error from port ", i))
		}
		log.Warn("ours")
		if got := lines(); len(got) != texts+burst+1 || !strings.Contains(got[len(got)-1], "ours") {
			t.Errorf("%d lines, the last: %s", len(got), got[len(got)-1])
		}
		harness.Equal(t, len(limit.state.buckets), texts, "texts are remembered")
		time.Sleep(time.Minute)
		lines()
		log.Warn("new")
		harness.Equal(t, len(limit.state.buckets), 1, "texts are remembered for nothing")
	})
}

func TestWhatIsLeftOutAtTheEndIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, limit, lines := written()
		for range burst + 3 {
			log.Info("connection refused")
		}
		lines()
		limit.Flush()
		limit.Flush()
		if got := lines(); len(got) != 1 ||
			got[0] != `level=INFO msg="log lines were left out" text="connection refused" left_out=3` {
			t.Errorf("%q", got)
		}
		time.Sleep(time.Hour) // no timer is left
		if got := lines(); got[0] != "" {
			t.Errorf("%q", got)
		}
	})
}
