package service

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows/svc"

	"github.com/cniscope/cniscope/test/harness"
)

type managed struct {
	*testing.T
	ask  chan svc.ChangeRequest
	told chan svc.Status
	over chan uint32 // exit code
}

func manage(t *testing.T, program Program) managed {
	m := managed{t, make(chan svc.ChangeRequest), make(chan svc.Status), make(chan uint32, 1)}
	go func() {
		_, code := (&service{program: program, patience: time.Minute}).Execute(nil, m.ask, m.told)
		m.over <- code
	}()
	return m
}

func (m managed) is(want svc.State) svc.Status {
	m.Helper()
	for now := range m.told {
		if now.State == want {
			return now
		}
	}
	m.Fatalf("it never says %v", want)
	return svc.Status{}
}

func TestAServiceRunsFromWhenItIsUpUntilItIsStopped(t *testing.T) {
	for _, by := range []svc.Cmd{svc.Stop, svc.Shutdown, svc.PreShutdown} {
		begin := make(chan struct{})
		m := manage(t, func(ctx context.Context, up func()) int {
			<-begin
			up()
			up() // has no effect
			<-ctx.Done()
			return 0
		})
		if now := m.is(svc.StartPending); now.WaitHint == 0 {
			t.Error("the manager is not told how long it may take")
		}
		close(begin)
		if now := m.is(svc.Running); now.Accepts&svc.AcceptStop == 0 || now.Accepts&svc.AcceptShutdown == 0 {
			t.Errorf("it cannot be stopped: %+v", now)
		}
		m.ask <- svc.ChangeRequest{Cmd: svc.Interrogate}
		m.is(svc.Running)
		m.ask <- svc.ChangeRequest{Cmd: by}
		if now := m.is(svc.StopPending); now.WaitHint < 10_000 {
			t.Errorf("it may take %d ms to end, which needs more", now.WaitHint)
		}
		harness.Equal(t, <-m.over, 0, "it ended with")
	}
}

// Recovery actions apply to an error.
func TestAServiceThatCannotBeginEndsWithItsCode(t *testing.T) {
	m := manage(t, func(context.Context, func()) int { return 75 })
	m.is(svc.StartPending)
	harness.Equal(t, <-m.over, 75, "it ended with")
}

type eventLog []string

func (l *eventLog) Info(_ uint32, text string) error    { return l.add("I ", text) }
func (l *eventLog) Warning(_ uint32, text string) error { return l.add("W ", text) }
func (l *eventLog) Error(_ uint32, text string) error   { return l.add("E ", text) }
func (l *eventLog) add(kind, text string) error {
	_, text, _ = strings.Cut(text, "m")
	*l = append(*l, kind+text[strings.LastIndexByte(text, '=')+1:])
	return nil
}

func TestALineOfTheLogIsAnEventOfItsLevel(t *testing.T) {
	var to eventLog
	log := slog.New(slog.NewTextHandler(eventWriter{&to}, nil))
	log.Info("a", "says", "level=ERROR")
	log.Warn("b", slog.Int("n", 1))
	log.Error("c", "n", 2)
	harness.DeepEqual(t, to, (eventLog{`I ERROR"`, "W 1", "E 2"}))
}
