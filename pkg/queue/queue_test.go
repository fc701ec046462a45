package queue

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cniscope/cniscope/pkg/spool"
	"github.com/cniscope/cniscope/test/harness"
)

type sender func(ctx context.Context, items [][]byte) error

func (f sender) Send(ctx context.Context, items [][]byte) error { return f(ctx, items) }

func (sender) Shutdown(context.Context) error { return nil }

// gate is a sender whose requests wait for an answer.
type gate struct {
	arrived chan []string
	answer  chan error
	down    chan struct{}
}

func newGate() *gate {
	return &gate{make(chan []string), make(chan error), make(chan struct{})}
}

func (g *gate) Send(ctx context.Context, items [][]byte) error {
	var names []string
	for _, item := range items {
		names = append(names, string(item))
	}
	select {
	case g.arrived <- names:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-g.answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) Shutdown(context.Context) error { close(g.down); return nil }

func over() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// story runs a queue in a synctest bubble.
func story(t *testing.T, s Sender, o Options, tell func(t *testing.T, q *Queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.Name = "test"
		q := New(s, o)
		tell(t, q)
		_, _ = q.Close(over())
	})
}

func add(t *testing.T, q *Queue, names ...string) {
	t.Helper()
	for _, name := range names {
		if !q.Add(Item{Data: []byte(name)}) {
			t.Fatalf("%s was not taken: %+v", name, q.Stats())
		}
	}
}

// goesOn waits until everything is idle.
func goesOn(q *Queue) Stats {
	synctest.Wait()
	return q.Stats()
}

func TestItIsBoundedInBytesAndItems(t *testing.T) {
	story(t, newGate(), Options{Bytes: 10_000, Overhead: 1000, Items: 5}, func(t *testing.T, q *Queue) {
		for range 7 {
			q.Add(Item{})
		}
		if s := q.Stats(); s.Waiting != 5 || s.WaitingBytes != 5000 || s.Dropped[Full] != 2 {
			t.Errorf("%+v", s)
		}
	})
	story(t, newGate(), Options{Bytes: 10_000, Overhead: 1000}, func(t *testing.T, q *Queue) {
		for range 7 {
			q.Add(Item{Data: make([]byte, 1000)})
		}
		if s := q.Stats(); s.Waiting != 5 || s.WaitingBytes != 10_000 || s.Dropped[Full] != 2 {
			t.Errorf("%+v", s)
		}
	})
	story(t, newGate(), Options{Largest: 10}, func(t *testing.T, q *Queue) {
		add(t, q, "0123456789")
		if q.Add(Item{Data: []byte("0123456789x")}) || q.Stats().Dropped[TooLarge] != 1 {
			t.Errorf("%+v", q.Stats())
		}
	})
}

func TestRequestsAreBounded(t *testing.T) {
	big := strings.Repeat("x", maxRequest/3)
	for name, test := range map[string]struct {
		batch int
		want  []int
	}{
		"in bytes": {0, []int{3, 1, 1, 1}},
		"in items": {1, []int{1, 1, 1, 1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate()
			story(t, g, Options{Batch: test.batch}, func(t *testing.T, q *Queue) {
				add(t, q, "first")
				<-g.arrived // others gather during the request
				add(t, q, big, big, big, big, strings.Repeat("y", maxRequest+1), "last")
				g.answer <- nil
				for i, want := range test.want {
					harness.Equal(t, len(<-g.arrived), want, "items of request", i)
					g.answer <- nil
				}
				harness.Equal(t, goesOn(q).Sent, 7, "sent")
			})
		})
	}
}

// A single failure is not logged; an outage's begin, end and duration are.
func TestPausesGrowAndAnOutageIsSaidOnce(t *testing.T) {
	var log strings.Builder
	var tried []time.Duration
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		q := New(sender(func(context.Context, [][]byte) error {
			tried = append(tried, time.Since(began))
			if len(tried) < 20 || len(tried) == 21 {
				return errors.New("nobody \x1b[31mthere")
			}
			return nil
		}), Options{Name: "test", Items: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
		add(t, q, "a")
		goesOn(q)
		if q.Add(Item{Data: []byte("too many")}) {
			t.Error("taken")
		}
		time.Sleep(time.Second)
		if s := goesOn(q); s.FailingSince != began || s.Retries < 1 || !strings.Contains(s.LastError,
			`nobody \x1b[31mthere`) {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Hour)
		if s := goesOn(q); s.Sent != 1 || !s.FailingSince.IsZero() || s.Retries != 19 {
			t.Errorf("%+v", s)
		}
		add(t, q, "b")
		time.Sleep(time.Second)
		harness.Equal(t, goesOn(q).Sent, 2, "sent a second after the next failure: pauses are short again")
		_, _ = q.Close(t.Context())
	})
	if first, longest := tried[1], tried[19]-tried[18]; first < 250*time.Millisecond || first > 750*time.Millisecond ||
		longest < 10*time.Second || longest > 30*time.Second {
		t.Errorf("pauses from %s to %s", first, longest)
	}
	if text := log.String(); strings.Count(text, "\n") != 2 || strings.Count(text, "export failed, retrying") != 1 ||
		strings.Count(text, "export recovered") != 1 || !strings.Contains(text, "dropped=1") {
		t.Errorf("the log:\n%s", text)
	}
}

// The log counts drops once a minute while exports succeed, and has no line for a single failure.
func TestDropsAreSaidOnceAMinute(t *testing.T) {
	var log strings.Builder
	var queue *Queue
	answers := []error{nil, errors.New("once"), nil, nil}
	story(t, sender(func(context.Context, [][]byte) error {
		queue.Add(Item{Data: []byte("too many")})
		answer := answers[0]
		answers = answers[1:]
		return answer
	}), Options{Items: 1, Log: slog.New(slog.NewTextHandler(&log, nil))}, func(t *testing.T, q *Queue) {
		queue = q
		add(t, q, "first")
		first := goesOn(q)
		add(t, q, "again")
		time.Sleep(time.Minute)
		add(t, q, "later")
		goesOn(q)
		harness.Equal(t, first.Dropped[Full], 1, "dropped, in the first snapshot")
	})
	if text := log.String(); strings.Count(text, "\n") != 2 || strings.Count(text, "export dropped data") != 2 ||
		!strings.Contains(text, "dropped=1 ") || !strings.Contains(text, "dropped=3 ") {
		t.Errorf("the log:\n%s", text)
	}
}

// A pause is up to RetryTo.
func TestADestinationSaysWhenToComeBack(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{7 * time.Second: 7 * time.Second, time.Hour: 30 * time.Second} {
		turn := 0
		s := sender(func(context.Context, [][]byte) error {
			if turn++; turn == 1 {
				return &ThrottledError{errors.New("busy"), asked}
			}
			return nil
		})
		story(t, s, Options{}, func(t *testing.T, q *Queue) {
			add(t, q, "a")
			time.Sleep(want - time.Second)
			harness.Equal(t, goesOn(q).Sent, 0, "sent before", want)
			time.Sleep(time.Second)
			harness.Equal(t, goesOn(q).Sent, 1, "sent after", want)
		})
	}
}

// A refused request is halved until the faulty item is alone.
func TestOneBadItemTakesNoOtherWithIt(t *testing.T) {
	for reason, fault := range map[Reason]func() error{
		Rejected: func() error { return &RejectedError{errors.New("bad")} },
		Panicked: func() error { panic("oops") },
	} {
		t.Run(string(reason), func(t *testing.T) {
			var log strings.Builder
			var got []string
			s := sender(func(_ context.Context, items [][]byte) error {
				if slices.ContainsFunc(items, func(item []byte) bool { return string(item) == "bad" }) {
					return fault()
				}
				for _, item := range items {
					got = append(got, string(item))
				}
				return nil
			})
			story(t, s, Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, func(t *testing.T, q *Queue) {
				add(t, q, "a", "bad", "b", "c", "bad", "d")
				if s := goesOn(q); s.Sent != 4 || s.Dropped[reason] != 2 || s.Retries != 0 || !s.FailingSince.IsZero() {
					t.Errorf("%+v", s)
				}
			})
			harness.EqualSlices(t, got, []string{"a", "b", "c", "d"})
			if n := strings.Count(log.String(), `msg="exporter panicked"`); reason == Panicked && n != 1 {
				t.Errorf("said %d times:\n%s", n, log.String())
			}
		})
	}
}

type broken struct{ sender }

func (broken) Shutdown(context.Context) error { panic("oops again") }

func TestAPanicAtTheEndIsAnError(t *testing.T) {
	story(t, broken{}, Options{}, func(t *testing.T, q *Queue) {
		if n, err := q.Close(t.Context()); n != 0 || err == nil || !strings.Contains(err.Error(), "oops again") {
			t.Errorf("%d, %v", n, err)
		}
	})
}

func TestWhatIsRefusedInPartIsCounted(t *testing.T) {
	s := sender(func(context.Context, [][]byte) error { return &PartialError{Spans: 3, Message: "too old"} })
	story(t, s, Options{}, func(t *testing.T, q *Queue) {
		add(t, q, "a")
		if s := goesOn(q); s.Sent != 1 || s.RefusedSpans != 3 || s.Retries != 0 || !strings.Contains(s.LastError, "too old") {
			t.Errorf("%+v", s)
		}
	})
}

// A sender that arrives after Close is shut down.
func TestASenderThatComesTooLateIsShutDown(t *testing.T) {
	story(t, nil, Options{}, func(t *testing.T, q *Queue) {
		if _, err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
		late := newGate()
		q.SetSender(late)
		<-late.down
	})
}

func TestANewSenderDoesNotWaitForTheRetryOfTheLast(t *testing.T) {
	first := newGate()
	story(t, first, Options{RetryFrom: time.Hour, RetryTo: time.Hour}, func(t *testing.T, q *Queue) {
		second := newGate()
		add(t, q, "a")
		<-first.arrived
		first.answer <- errors.New("not now")
		synctest.Wait()
		began := time.Now()
		q.SetSender(second)
		harness.EqualSlices(t, <-second.arrived, []string{"a"})
		if waited := time.Since(began); waited != 0 {
			t.Errorf("waited %s", waited)
		}
		second.answer <- nil
	})
}

// After a refused request, requests grow again.
func TestRequestsGrowAgain(t *testing.T) {
	var sizes []int
	story(t, nil, Options{}, func(t *testing.T, q *Queue) {
		g := newGate()
		q.SetSender(g)
		add(t, q, "first")
		<-g.arrived
		add(t, q, "bad", "a", "b", "c", "d", "e", "f", "g")
		g.answer <- nil
		for q.Stats().Sent < 8 {
			names := <-g.arrived
			sizes = append(sizes, len(names))
			if names[0] == "bad" {
				g.answer <- &RejectedError{errors.New("bad")}
			} else {
				g.answer <- nil
			}
			synctest.Wait()
		}
	})
	harness.EqualSlices(t, sizes, []int{8, 4, 2, 1, 1, 2, 4})
}

func TestTheSenderBeforeEndsAfterItsLastRequest(t *testing.T) {
	story(t, nil, Options{}, func(t *testing.T, q *Queue) {
		first, second := newGate(), newGate()
		q.SetSender(first)
		add(t, q, "a")
		<-first.arrived
		q.SetSender(second)
		synctest.Wait()
		select {
		case <-first.down:
			t.Error("shut down in the middle of a request")
		default:
		}
		first.answer <- nil
		<-first.down
		add(t, q, "b")
		harness.EqualSlices(t, <-second.arrived, []string{"b"})
		second.answer <- nil
	})
}

func TestWithoutASenderNothingIsKept(t *testing.T) {
	story(t, nil, Options{}, func(t *testing.T, q *Queue) {
		if q.Admits() || q.Add(Item{}) || q.Stats().Lost() != 0 || q.Stats().Unwanted != 2 {
			t.Errorf("%+v", q.Stats())
		}
		g := newGate()
		q.SetSender(g)
		add(t, q, "b", "c")
		<-g.arrived
		q.SetSender(nil)
		g.answer <- errors.New("not now")
		<-g.down
		if s := goesOn(q); s.Waiting != 0 || s.Dropped[SwitchedOff] == 0 || !s.FailingSince.IsZero() {
			t.Errorf("%+v", s)
		}
	})
}

func TestClosing(t *testing.T) {
	t.Run("does not wait for the next retry", func(t *testing.T) {
		g := newGate()
		story(t, g, Options{RetryFrom: time.Hour, RetryTo: 2 * time.Hour}, func(t *testing.T, q *Queue) {
			add(t, q, "a")
			<-g.arrived
			g.answer <- errors.New("not now")
			go func() {
				<-g.arrived
				g.answer <- nil
			}()
			began := time.Now()
			if n, err := q.Close(t.Context()); n != 0 || err != nil || time.Since(began) != 0 {
				t.Errorf("%d, %v, after %s", n, err, time.Since(began))
			}
			if q.Add(Item{}) || q.Stats().Dropped[Closed] != 1 {
				t.Errorf("%+v", q.Stats())
			}
		})
	})
	t.Run("sends the spool, and then ends", func(t *testing.T) {
		s := harness.Must(spool.Open(spool.Options{Dir: t.TempDir(), MaxBytes: 64 << 20, MaxAge: time.Hour}))(t)
		defer s.Close()
		sent := sender(func(context.Context, [][]byte) error { return nil })
		story(t, sent, Options{Spool: s}, func(t *testing.T, q *Queue) {
			add(t, q, "a", "b")
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			if n, err := q.Close(ctx); n != 0 || err != nil || ctx.Err() != nil || q.Stats().Sent != 2 {
				t.Errorf("%d, %v, %v, %+v", n, err, ctx.Err(), q.Stats())
			}
		})
	})
	t.Run("cuts off a request in progress", func(t *testing.T) {
		g := newGate()
		story(t, g, Options{}, func(t *testing.T, q *Queue) {
			add(t, q, "a")
			<-g.arrived
			if n, err := q.Close(over()); n != 1 || err != nil || q.Stats().Dropped[Closed] != 1 {
				t.Errorf("%d, %v, %+v", n, err, q.Stats())
			}
			<-g.down
		})
	})
	t.Run("leaves a sender that does not stop", func(t *testing.T) {
		entered, leave := make(chan struct{}), make(chan struct{})
		stubborn := sender(func(context.Context, [][]byte) error {
			close(entered)
			<-leave
			return nil
		})
		synctest.Test(t, func(t *testing.T) {
			entered, leave = make(chan struct{}), make(chan struct{})
			q := New(stubborn, Options{})
			add(t, q, "a")
			<-entered
			began := time.Now()
			if n, err := q.Close(over()); n != 1 || err == nil || !strings.Contains(err.Error(), "does not stop") ||
				time.Since(began) != 2*time.Second {
				t.Errorf("%d, %v, after %s", n, err, time.Since(began))
			}
			close(leave)
			synctest.Wait() // it must handle the emptied queue
		})
	})
}

// The first item of a burst is sent at once, and so are the last ones when the queue is closed.
func TestABurstSharesRequests(t *testing.T) {
	var mu sync.Mutex
	var requests []int
	send := sender(func(_ context.Context, items [][]byte) error {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, len(items))
		return nil
	})
	story(t, send, Options{}, func(t *testing.T, q *Queue) {
		sent := func(want ...int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			harness.EqualSlices(t, requests, want, "items of requests")
		}
		for range 10 {
			add(t, q, "item")
			sent(1)
			time.Sleep(pace / 100)
		}
		time.Sleep(pace)
		sent(1, 9)
		time.Sleep(pace)
		add(t, q, "alone")
		sent(1, 9, 1)
		add(t, q, "last")
		ctx, cancel := context.WithTimeout(t.Context(), pace/2)
		defer cancel()
		_, err := q.Close(ctx)
		harness.Check(t, err)
		sent(1, 9, 1, 1)
	})
}

// A queue that has room for less than a burst sends before it is full.
func TestABurstFillsNoQueue(t *testing.T) {
	send := sender(func(context.Context, [][]byte) error { return nil })
	for _, o := range []Options{{Items: 8}, {Bytes: 40}} {
		story(t, send, o, func(t *testing.T, q *Queue) {
			for range 100 {
				add(t, q, "item")
				synctest.Wait()
			}
		})
	}
}
