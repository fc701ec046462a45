package subprocess

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"testing"

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

func started(t *testing.T) *Process {
	t.Helper()
	anchors := anchor.New()
	anchors.Serves("a socket", os.Getpid())
	p, err := Start(connector.Options{Processes: 100, Arguments: arguments.Known, Anchors: anchors, Log: slog.New(slog.DiscardHandler)},
		[]string{"/proc/self/exe", "connector"})
	if _, is := errors.AsType[*connector.UnsupportedError](err); is {
		t.Skip(err) // such as in a PID namespace
	}
	harness.Check(t, err)
	return p
}

func TestItTellsWhatItSees(t *testing.T) {
	p := started(t)
	ctx, cancel := context.WithCancel(t.Context())
	container := harness.Container()
	ours, known, exits, ended := harness.NewOurs(container), make(chan bool, 1), make(chan event.Exit, 1), make(chan error, 1)
	go func() {
		ended <- p.Run(ctx, func(e event.Event) {
			if !ours.Has(e) {
				return
			}
			switch b := e.Body.(type) {
			case *event.Exec:
				known <- true
			case *event.Exit:
				exits <- *b
			}
		})
	}()
	harness.Until(t, "it has begun", func() bool { return p.Stats().Known > 0 })
	dir := t.TempDir()
	harness.Check(t, os.WriteFile(dir+"/bridge", []byte("#!/bin/sh\nread nothing; exit 7"), 0o755))
	cmd := exec.Command(dir + "/bridge")
	cmd.Env = []string{"CNI_COMMAND=ADD", "CNI_CONTAINERID=" + container, "CNI_PATH=" + dir}
	stdin := harness.Must(cmd.StdinPipe())(t)
	harness.Check(t, cmd.Start())
	harness.Until(t, "the plugin is known", func() bool { return len(known) > 0 })
	harness.Check(t, stdin.Close())
	_ = cmd.Wait()
	harness.Until(t, "its end is known", func() bool { return len(exits) > 0 })
	if e := <-exits; e.Code != 7 {
		t.Errorf("%+v", e)
	}
	cancel()
	harness.Check(t, errors.Join(<-ended, p.Close()))
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
		harness.Equal(t, o.put(part), (i < 4), "part", i)
	}
	o.close()
	if err := o.send(read); err != nil || read.Len() != outboxMax {
		t.Errorf("%d bytes, %v", read.Len(), err)
	}
}
