//go:build linux

package rig_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/rig"
)

func need(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, rig.ErrNoTools) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: a rig makes namespaces, mounts and links")
	}
}

func TestPodsAndTheirTraces(t *testing.T) {
	needRoot(t)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	j, err := rig.StartJaeger(ctx, rig.JaegerOptions{Log: log})
	need(t, err)
	defer func() { need(t, j.Close()) }()
	begin := time.Now()
	r, err := rig.Start(ctx, rig.Options{OTLP: j.OTLP(), Log: log})
	need(t, err)
	t.Logf("containerd is ready after %s", time.Since(begin))
	defer func() { need(t, r.Close()) }()
	for i := range 3 {
		begin := time.Now()
		id, err := r.RunPod(ctx, rig.PodOptions{Name: fmt.Sprintf("pod-%d", i), HostPorts: []rig.HostPort{{Host: int32(18080 + i), Container: 80}}})
		need(t, err)
		t.Logf("RunPodSandbox took %s: %s", time.Since(begin), id)
	}
	if os.Getenv("HOLD") != "" {
		time.Sleep(time.Minute)
	}
}
