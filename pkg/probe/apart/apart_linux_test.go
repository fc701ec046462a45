package apart

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/probe/connector"
	"github.com/cniscope/cniscope/test/harness"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "connector" {
		if Serve() != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(harness.Host(m))
}

// started is a process of this program that observes what this one does.
func started(t *testing.T) *Process {
	t.Helper()
	anchors := anchor.New()
	anchors.Serves("a socket", os.Getpid())
	p, err := Start(connector.Options{Processes: 100, Arguments: arguments.Known, Anchors: anchors, Log: slog.New(slog.DiscardHandler)},
		[]string{"/proc/self/exe", "connector"})
	if _, is := errors.AsType[*connector.UnsupportedError](err); is {
		t.Skip(err) // in a PID namespace, say
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestItTellsWhatItSees(t *testing.T) {
	p := started(t)
	ctx, cancel := context.WithCancel(t.Context())
	exits, ended := make(chan event.Exit, 10), make(chan error, 1)
	go func() {
		ended <- p.Run(ctx, func(e event.Event) {
			if exit, is := e.Body.(*event.Exit); is {
				exits <- *exit
			}
		})
	}()
	harness.Eventually(t, func() error {
		if p.Stats().Known == 0 {
			return errors.New("it has not begun")
		}
		return nil
	})
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/bridge", []byte("#!/bin/sh\nread nothing; exit 7"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(dir + "/bridge")
	cmd.Env = []string{"CNI_COMMAND=ADD", "CNI_CONTAINERID=c1", "CNI_PATH=" + dir}
	_ = cmd.Run()
	select {
	case e := <-exits:
		if e.Code != 7 {
			t.Errorf("%+v", e)
		}
	case <-time.After(10 * time.Second):
		t.Error("no plugin was seen")
	}
	cancel()
	if err := errors.Join(<-ended, p.Close()); err != nil {
		t.Error(err)
	}
}

func TestAProcessThatEndsIsAnError(t *testing.T) {
	p := started(t)
	ended := make(chan error, 1)
	go func() { ended <- p.Run(t.Context(), func(event.Event) {}) }()
	_ = p.cmd.Process.Kill()
	if err := <-ended; err == nil {
		t.Error("nobody observes, and nobody is told")
	}
	_ = p.Close()
}

func TestACommandThatIsNoneIsAnError(t *testing.T) {
	for _, command := range [][]string{{"/bin/true"}, {"/nowhere"}} {
		if _, err := Start(connector.Options{}, command); err == nil {
			t.Errorf("%q observes", command)
		}
	}
}

func TestWhoReadsNothingIsNotWaitedFor(t *testing.T) {
	o, read := newOutbox(), &bytes.Buffer{}
	part := bytes.Repeat([]byte{1}, outboxMax/4)
	for i := range 6 {
		if room := o.put(part); room != (i < 4) {
			t.Errorf("part %d: %v", i, room)
		}
	}
	o.close()
	if err := o.send(read); err != nil || read.Len() != outboxMax {
		t.Errorf("%d bytes, %v", read.Len(), err)
	}
}
