package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cniscope/cniscope/pkg/spool"
	"github.com/cniscope/cniscope/test/harness"
)

// A segment that cannot be opened is logged, blocks nothing, and is sent once it can be.
func TestASpoolThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	s := harness.Must(spool.Open(spool.Options{Dir: dir, MaxBytes: 64 << 20, MaxAge: time.Hour}))(t)
	defer s.Close()
	var log strings.Builder
	story(t, nil, Options{Spool: s, Log: slog.New(slog.NewTextHandler(&log, nil))}, func(t *testing.T, q *Queue) {
		add(t, q, "a")
		harness.Equal(t, goesOn(q).Spooled, 1, "spooled")
		all := harness.Must(filepath.Glob(dir + "/0*"))(t)
		harness.Check(t, os.Rename(all[0], dir+"/away"))
		harness.Check(t, os.Symlink(all[0], all[0]))
		g := newGate()
		q.SetSender(g)
		harness.Says(t, goesOn(q).SpoolError, "read the spool")
		harness.Check(t, os.Rename(dir+"/away", all[0]))
		add(t, q, "b")
		for sent := 0; sent < 2; {
			sent += len(<-g.arrived)
			g.answer <- nil
		}
		if s := goesOn(q); s.Sent != 2 || s.Lost() != 0 {
			t.Errorf("%+v", s)
		}
	})
	harness.Equal(t, strings.Count(log.String(), "spool read failed, retrying"), 1, log.String())
}

// Every 5 s the spool drops old items. Without a sender they do not count as lost.
func TestWhatIsTooOldLeavesTheSpool(t *testing.T) {
	for name, sent := range map[string]bool{"to a destination": true, "without a destination": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s := harness.Must(spool.Open(spool.Options{Dir: dir, MaxBytes: 64 << 20, MaxAge: 10 * time.Second}))(t)
				var to Sender
				if sent {
					to = sender(func(context.Context, [][]byte) error { return errors.New("not now") })
				}
				q := New(to, Options{Spool: s, RetryFrom: time.Hour, RetryTo: 2 * time.Hour})
				add(t, q, "a")
				time.Sleep(14 * time.Second)
				before := goesOn(q)
				time.Sleep(2 * time.Second)
				after := goesOn(q)
				if before.Spool.Waiting == 0 || after.Spool.Waiting != 0 || before.Lost() != 0 || after.Lost() != after.Dropped[SpoolOld] || after.Lost() == 1 != sent {
					t.Errorf("%+v, %+v; then %+v, %+v", before, before.Spool, after, after.Spool)
				}
				_, _ = q.Close(over())
				harness.Check(t, s.Close())
			})
		})
	}
}

// A delivered item counts as sent although the spool cannot note it.
func TestAPositionThatIsNotSavedIsLogged(t *testing.T) {
	var log strings.Builder
	s := harness.Must(spool.Open(spool.Options{Dir: t.TempDir(), MaxBytes: 64 << 20, MaxAge: time.Hour}))(t)
	g := newGate()
	story(t, g, Options{Spool: s, Log: slog.New(slog.NewTextHandler(&log, nil))}, func(t *testing.T, q *Queue) {
		add(t, q, "a")
		<-g.arrived
		harness.Check(t, s.Close())
		g.answer <- nil
		harness.Equal(t, goesOn(q).Sent, 1, "sent")
	})
	harness.Says(t, log.String(), `level=WARN msg="spool position not saved, a restart may export twice"`)
}

// An item that the spool removes during a request counts once, as sent or as lost.
func TestWhatTheSpoolRemovesOnItsWayCountsOnce(t *testing.T) {
	for name, end := range map[string]struct {
		answer func(g *gate, q *Queue)
		sent   uint64
	}{
		"arrived": {func(g *gate, _ *Queue) { g.answer <- nil }, 10},
		"failed":  {func(g *gate, _ *Queue) { g.answer <- errors.New("not now") }, 0},
		"refused": {func(g *gate, _ *Queue) { g.answer <- &RejectedError{Err: errors.New("no")} }, 0},
		"cut off": {func(_ *gate, q *Queue) { _, _ = q.Close(over()) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := harness.Must(spool.Open(spool.Options{Dir: t.TempDir(), MaxBytes: 64 << 10, MaxAge: time.Hour}))(t)
			defer s.Close()
			story(t, nil, Options{Items: 200, Spool: s}, func(t *testing.T, q *Queue) {
				g, long := newGate(), strings.Repeat("x", 1000)
				fill := func(from, to int) {
					for i := from; i < to; i++ {
						add(t, q, fmt.Sprintf("%03d%s", i, long))
					}
					harness.Equal(t, goesOn(q).Spooled, uint64(to), "spooled")
				}
				fill(0, 10)
				size := s.Stats().Bytes / 10
				q.SetSender(g)
				<-g.arrived
				fill(10, 200)
				end.answer(g, q)
				if s := goesOn(q); s.Sent != end.sent || s.Sent+s.Lost()+uint64(s.Spool.Waiting/size) != 200 {
					t.Errorf("%+v, spool %+v", s, s.Spool)
				}
			})
		})
	}
}

func TestASpoolThatIsGoneIsNoEnd(t *testing.T) {
	s := harness.Must(spool.Open(spool.Options{Dir: t.TempDir(), MaxBytes: 64 << 20, MaxAge: time.Hour}))(t)
	story(t, nil, Options{Spool: s}, func(t *testing.T, q *Queue) {
		g := newGate()
		q.SetSender(g)
		harness.Check(t, s.Close())
		add(t, q, "a")
		harness.EqualSlices(t, <-g.arrived, []string{"a"})
		g.answer <- errors.New("not now")
		<-g.arrived
		g.answer <- nil
		if s := goesOn(q); s.Sent != 1 || s.Unspooled != 1 || s.Lost() != 0 {
			t.Errorf("%+v", s)
		}
	})
}
