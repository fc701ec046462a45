//go:build linux

package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/lock"
)

func TestAServiceWaitsForTheCniscopeThatHasTheNode(t *testing.T) {
	dir := t.TempDir()
	release, err := lock.Take(dir, "in a pod")
	if err != nil {
		t.Fatal(err)
	}
	socket := manager(t, 20*time.Millisecond)
	l := newLife(t.Context(), slog.New(slog.NewTextHandler(t.Output(), nil)))
	taken := make(chan error, 1)
	go func() {
		let, err := takeNode(l, dir)
		if err == nil {
			let()
		}
		taken <- err
	}()
	if got := hear(t, socket); !strings.HasPrefix(got, "READY=1\nSTATUS=waits for another cniscope to end: pid ") {
		t.Errorf("systemd hears %q", got)
	}
	for range 3 {
		if got := hear(t, socket); got != "WATCHDOG=1" {
			t.Errorf("then %q", got)
		}
	}
	release()
	for said := ""; said != "STATUS="; {
		said = hear(t, socket)
	}
	if err := <-taken; err != nil {
		t.Errorf("when the other one has ended: %v", err)
	}
}

func TestAServiceThatWaitsEndsWhenItIsTold(t *testing.T) {
	dir := t.TempDir()
	release, err := lock.Take(dir, "in a pod")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	socket := manager(t, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	l := newLife(ctx, slog.New(slog.DiscardHandler))
	taken := make(chan error, 1)
	go func() {
		_, err := takeNode(l, dir)
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
			dir := t.TempDir()
			l := newLife(t.Context(), slog.New(slog.DiscardHandler))
			release, err := takeNode(l, dir)
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			_, err = takeNode(l, dir)
			if err == nil || exitCode(err) != 75 || !strings.Contains(err.Error(), x.by) {
				t.Errorf("the second: %v", err)
			}
		})
	}
}
