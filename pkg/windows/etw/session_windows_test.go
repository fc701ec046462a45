package etw_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/probe/proctracker"
	"github.com/cniscope/cniscope/pkg/windows/etw"
	"github.com/cniscope/cniscope/test/harness"
)

// Twice, so nothing is left behind.
func TestASessionThatCannotBeHad(t *testing.T) {
	for range 2 {
		s, err := etw.Open(etw.Options{Name: "cniscope-test-refused", Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if etw.Wine() {
				t.Error("Wine tells of nothing, but its session was believed")
			}
			return
		}
		var refused *etw.RefusedError
		if !errors.As(err, &refused) {
			t.Fatalf("%T: %v", err, err)
		}
		want := "run cniscope as SYSTEM or as an administrator"
		if etw.Wine() {
			want = "it needs Windows Server 2016 or later"
		}
		if refused.Remedy != want || refused.Doing == "" || refused.Err == nil {
			t.Errorf("%+v", refused)
		}
		t.Log(err)
	}
}

// heard is about one program.
type heard struct {
	name   string
	soon   map[uint32]bool
	begins chan etw.Change
	ends   chan etw.Change
}

func (h *heard) Soon(pid uint32, _ int64) { h.soon[pid] = true }
func (h *heard) Lost(uint64)              {}
func (h *heard) Advance(int64)            {}
func (h *heard) Take(c etw.Change) {
	switch {
	case c.Kind == proctracker.Began && strings.Contains(c.CommandLine, h.name) && h.soon[c.PID]:
		h.begins <- c
	case c.Kind == proctracker.Ended && strings.Contains(c.CommandLine, h.name):
		h.ends <- c
	}
}

// On Windows as an administrator only. It replaces a leftover session.
func TestAChildIsTold(t *testing.T) {
	const name = "cniscope-test-child"
	left, err := etw.Open(etw.Options{Name: name, Log: slog.New(slog.DiscardHandler)}) // simulates a crash
	if err != nil {
		t.Skipf("there is no event tracing here: %v", err)
	}
	s := harness.Must(etw.Open(etw.Options{Name: name, Log: slog.New(slog.DiscardHandler)}))(t)
	defer func() { _, _ = left.Close(), s.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	h := &heard{name: "nobody-calls-a-test-so", soon: map[uint32]bool{}, begins: make(chan etw.Change, 1), ends: make(chan etw.Change, 1)}
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, h) }()
	self := harness.Must(os.Executable())(t)
	child := exec.Command(self, "-test.run=nobody-calls-a-test-so")
	harness.Check(t, child.Run())
	for _, told := range []chan etw.Change{h.begins, h.ends} {
		select {
		case c := <-told:
			if c.PID != uint32(child.Process.Pid) || c.Created == 0 {
				t.Errorf("%+v", c)
			}
		case err := <-done:
			t.Fatal(err)
		case <-time.After(time.Minute):
			t.Fatalf("nothing was told: %+v", s.Stats())
		}
	}
	cancel()
	harness.Check(t, <-done)
}
