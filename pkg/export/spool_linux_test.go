package export

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cniscope/cniscope/pkg/otlp"
	"github.com/cniscope/cniscope/pkg/queue"
	"github.com/cniscope/cniscope/pkg/spool"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/otlptest"
)

func newSpool(t *testing.T, dir string) *spool.Spool {
	t.Helper()
	s := harness.Must(spool.Open(spool.Options{Dir: dir, MaxBytes: 64 << 20, MaxAge: time.Hour}))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// restart closes a queue at once and opens the spool again.
func restart(t *testing.T, q *Queue, dir string) *spool.Spool {
	t.Helper()
	if n, err := q.Close(done()); n != 0 || err != nil {
		t.Fatalf("%d undelivered, %v", n, err)
	}
	harness.Check(t, q.Spool.Close())
	return newSpool(t, dir)
}

func stored(t *testing.T, q *Queue, n uint64) {
	t.Helper()
	harness.Until(t, "all are written down", func() bool { return q.Stats().Spooled == n })
}

func TestWhatIsSpooledArrivesOnceAcrossRestarts(t *testing.T) {
	addr, dir := harness.Address(t), t.TempDir()
	want := operations(200)
	// Memory holds few operations, the spool many.
	q := newOTLPQueue(t, addr, queue.Options{Items: 20, Spool: newSpool(t, dir)})
	for i, name := range want[:150] {
		enqueue(t, q, name)
		stored(t, q, uint64(i+1))
	}
	harness.Until(t, "some retries", func() bool { return q.Stats().Retries >= 3 })
	if s := q.Stats(); s.Waiting != 0 || s.Spool.Waiting == 0 || s.Sent != 0 || s.Lost() != 0 {
		t.Errorf("%+v", s)
	}

	q = newOTLPQueue(t, addr, queue.Options{Items: 50, Spool: restart(t, q, dir)})
	enqueue(t, q, want[150:]...)
	c := otlptest.Collect(t, addr, &otlptest.Collector{})
	harness.Until(t, "all arrived", func() bool { return q.Stats().Sent == 200 })
	if got := sorted(c); !slices.Equal(got, want) {
		t.Errorf("%d arrived: %q", len(got), got)
	}
	if s := q.Stats(); s.Spool.Waiting != 0 || s.Spool.Bytes == 0 || s.Lost() != 0 {
		t.Errorf("%+v", s)
	}

	q = newOTLPQueue(t, addr, queue.Options{Spool: restart(t, q, dir)})
	enqueue(t, q, "one more")
	harness.Until(t, "it arrived", func() bool { return q.Stats().Sent == 1 })
	harness.Equal(t, len(sorted(c)), 201, "arrived")
}

// A spool without an endpoint keeps operations, and a later endpoint receives them.
func TestASpoolWithoutAnEndpoint(t *testing.T) {
	dir := t.TempDir()
	q := newQueue(t, nil, queue.Options{Spool: newSpool(t, dir)})
	want := operations(10)
	enqueue(t, q, want...)
	stored(t, q, 10)
	harness.Equal(t, q.Stats().Lost(), 0, "lost")
	c := otlptest.Collect(t, "127.0.0.1:0", &otlptest.Collector{})
	e := harness.Must(otlp.New(otlp.Options{Endpoint: c.Addr, Timeout: patience}))(t)
	q.SetSender(e)
	harness.Until(t, "all arrived", func() bool { return q.Stats().Sent == 10 })
	q.SetSender(nil)
	enqueue(t, q, "later")
	stored(t, q, 11)
	harness.EqualSlices(t, sorted(c), want)
	if n, err := q.Close(soon(t)); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if s := q.Stats(); s.Spool.Waiting == 0 || s.Lost() != 0 {
		t.Errorf("%+v", s)
	}
}

func TestADamagedOperationIsCountedAndPassedOver(t *testing.T) {
	addr, dir := harness.Address(t), t.TempDir()
	q := newOTLPQueue(t, addr, queue.Options{Spool: newSpool(t, dir)})
	enqueue(t, q, operations(10)...)
	stored(t, q, 10)
	if n, err := q.Close(done()); n != 0 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	harness.Check(t, q.Spool.Close())
	files, err := filepath.Glob(filepath.Join(dir, "*.segment"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	data := harness.Must(os.ReadFile(files[0]))(t)
	data = []byte(strings.Replace(string(data), "operation 004", "operation 00X", 1))
	data = data[:len(data)-5]
	harness.Check(t, os.WriteFile(files[0], data, 0o600))

	q = newOTLPQueue(t, addr, queue.Options{Spool: newSpool(t, dir)})
	c := otlptest.Collect(t, addr, &otlptest.Collector{})
	harness.Until(t, "the rest arrived", func() bool { return q.Stats().Sent == 8 })
	if got := sorted(c); slices.Contains(got, "operation 00X") || q.Stats().Dropped[queue.Damaged] != 2 {
		t.Errorf("%q, %+v", got, q.Stats())
	}
}

func TestAFullDiskIsSaidAndWhatComesGoesOnFromMemory(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=128k,mode=700"); err != nil {
		t.Skipf("a full disk cannot be made here: mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	var log harness.Log
	addr := harness.Address(t)
	q := newOTLPQueue(t, addr, queue.Options{Spool: newSpool(t, dir), Log: slog.New(slog.NewTextHandler(&log, nil))})
	const all = 200
	for i := range all {
		enqueue(t, q, fmt.Sprintf("%03d%s", i, strings.Repeat("x", 1000)))
	}
	harness.Until(t, "all are somewhere", func() bool { s := q.Stats(); return s.Spooled+s.Unspooled == all })
	if s := q.Stats(); s.Unspooled == 0 || s.Waiting != int(s.Unspooled) || s.Lost() != 0 {
		t.Errorf("%+v", s)
	}
	c := otlptest.Collect(t, addr, &otlptest.Collector{})
	harness.Until(t, "all arrived", func() bool { return q.Stats().Sent == all })
	harness.Equal(t, len(slices.Compact(sorted(c))), all, "arrived once")
	// Make room.
	harness.Check(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT, "size=10m"))
	spooled := q.Stats().Spooled
	enqueue(t, q, "last", "one more", "and one")
	stored(t, q, spooled+3)
	harness.Until(t, "the log says so", func() bool { return strings.Contains(log.String(), "spool write recovered") })
	if text := log.String(); strings.Count(text, "spool write recovered") != 1 || strings.Count(text, "spool write failed, queueing in memory") != 1 ||
		strings.Count(text, "no space left on device") != 1 ||
		!strings.Contains(text, fmt.Sprintf("unspooled=%d", q.Stats().Unspooled)) {
		t.Errorf("the log:\n%s", text)
	}
}

// Many goroutines use a queue at once, with a spool and without, while its exporter fails now and then: nothing is lost
// uncounted.
func TestEveryOperationIsAccountedFor(t *testing.T) {
	for name, o := range map[string]queue.Options{
		"memory": {Items: 50}, "spool": {Items: 50, Spool: newSpool(t, t.TempDir())},
	} {
		t.Run(name, func(t *testing.T) {
			var turn int
			c := otlptest.Collect(t, "127.0.0.1:0",
				&otlptest.Collector{Answer: func([]string) (*coltracepb.ExportTracePartialSuccess, error) {
					turn++ // one worker, one request at a time
					if turn%3 == 0 {
						return nil, status.Error(codes.Unavailable, "now and then")
					}
					return nil, nil
				}})
			q := newOTLPQueue(t, c.Addr, o)
			const each, all = 250, 4 * 250
			var wg sync.WaitGroup
			for g := range 4 {
				wg.Go(func() {
					for i := range each {
						offer(q, fmt.Sprintf("%d/%d", g, i))
						_ = q.Stats()
					}
				})
			}
			wg.Wait()
			undelivered, err := q.Close(soon(t))
			s := q.Stats()
			if err != nil || undelivered != 0 || s.Sent+s.Lost() != all || uint64(len(sorted(c))) != s.Sent || o.Spool != nil &&
				s.Sent != s.Spooled {
				t.Errorf("%v, %d undelivered, %d arrived, %+v", err, undelivered, len(sorted(c)), s)
			}
			harness.Equal(t, len(slices.Compact(sorted(c))), int(s.Sent), "arrived once")
		})
	}
}
