//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/lock"
	"github.com/cniscope/cniscope/test/harness"
)

// inFolder are options whose lock lies in a folder, and their file.
func inFolder(t *testing.T, dir string) (options *config.Live, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "cniscope.toml")
	harness.Check(t, os.WriteFile(file, fmt.Appendf(nil, "[state]\ndir = %q\n", dir), 0o600))
	options = harness.Must(config.Open(config.Source{Base: config.Default(), Path: file}))(t)
	return options, file
}

func TestAServiceWaitsForTheCniscopeThatHasTheNode(t *testing.T) {
	dir := t.TempDir()
	release := harness.Must(lock.Take(dir, "in a pod"))(t)
	socket := manager(t, 20*time.Millisecond)
	l := newLife(t.Context(), slog.New(slog.NewTextHandler(t.Output(), nil)))
	taken := make(chan error, 1)
	options, file := inFolder(t, dir)
	go func() {
		let, err := takeNode(l, options)
		if err == nil {
			let()
		}
		taken <- err
	}()
	if got := hear(t, socket); !strings.HasPrefix(got, "READY=1\nSTATUS=waiting for another cniscope to exit: pid ") {
		t.Errorf("systemd hears %q", got)
	}
	for range 3 {
		harness.Equal(t, hear(t, socket), "WATCHDOG=1")
	}
	harness.Check(t, os.WriteFile(file, fmt.Appendf(nil, "[sampling]\nratio = 0.5\n[state]\ndir = %q\n", dir), 0o600))
	release()
	for said := ""; said != "STATUS="; {
		said = hear(t, socket)
	}
	if err := <-taken; err != nil {
		t.Errorf("when the other one has ended: %v", err)
	}
	if ratio := options.Options().Sampling.Ratio; ratio != 0.5 {
		t.Errorf("the options of when it was started are in force: a ratio of %v", ratio)
	}
}

func TestAServiceThatWaitsEndsWhenItIsTold(t *testing.T) {
	dir := t.TempDir()
	release := harness.Must(lock.Take(dir, "in a pod"))(t)
	defer release()
	socket := manager(t, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	l := newLife(ctx, slog.New(slog.DiscardHandler))
	taken := make(chan error, 1)
	options, _ := inFolder(t, dir)
	go func() {
		_, err := takeNode(l, options)
		taken <- err
	}()
	hear(t, socket)
	cancel()
	if held := (*lock.HeldError)(nil); !errors.As(<-taken, &held) {
		t.Error("it has a node that another one has")
	}
}

func TestWhoIsStartedOtherwiseIsToldWhoHasTheNode(t *testing.T) {
	for _, x := range []struct{ by, key, value string }{
		{"started by hand, ", "NOTIFY_SOCKET", ""},
		{"in a pod, ", "KUBERNETES_SERVICE_HOST", "10.96.0.1"},
	} {
		t.Run(x.by, func(t *testing.T) {
			t.Setenv("NOTIFY_SOCKET", "")
			t.Setenv(x.key, x.value)
			options, _ := inFolder(t, t.TempDir())
			l := newLife(t.Context(), slog.New(slog.DiscardHandler))
			release, err := takeNode(l, options)
			harness.Check(t, err)
			defer release()
			_, err = takeNode(l, options)
			if held, is := errors.AsType[*lock.HeldError](err); !is || held.ExitCode() != 75 || !strings.Contains(err.Error(), x.by) {
				t.Errorf("the second: %v", err)
			}
		})
	}
}
