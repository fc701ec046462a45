//go:build linux

package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/test/harness"
)

// holdVariable makes the test binary the owner of a rig, to be killed.
const holdVariable = "CNISCOPE_TEST_HOLD_A_RIG"

func TestMain(m *testing.M) {
	if os.Getenv(holdVariable) == "" {
		os.Exit(harness.Host(m))
	}
	if err := hold(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

// hold starts a Jaeger, two pods, and a pod whose CNI plugin hangs, prints their directories and closes nothing.
func hold(ctx context.Context) error {
	j, err := StartJaeger(ctx, JaegerOptions{})
	if err != nil {
		return err
	}
	r, err := Start(ctx, Options{Usual: true, Plugins: map[string][]byte{"hang": Script("sleep 1000")}})
	if err != nil {
		return err
	}
	if _, err := r.RunPod(ctx, PodOptions{Name: "web", HostPorts: []HostPort{{Host: 18080, Container: 80}}}); err != nil {
		return err
	}
	// Like a kubelet without cgroups.
	nowhere := func(config *cri.PodSandboxConfig) { config.Linux.CgroupParent = "" }
	if _, err := r.RunPod(ctx, PodOptions{Name: "nowhere", Config: nowhere}); err != nil {
		return err
	}
	if err := r.SetNetworks(ctx, Network{Plugins: []Plugin{Bridge(), Test("hang")}}); err != nil {
		return err
	}
	go func() { _, _ = r.RunPod(ctx, PodOptions{Name: "hanging"}) }()
	err = r.daemon.await(ctx, time.Minute, func(context.Context) error {
		processes, err := r.Processes()
		if err == nil && !slices.ContainsFunc(processes, func(p Process) bool { return p.Name == "sleep" }) {
			err = errors.New("no plugin hangs yet")
		}
		return err
	})
	fmt.Printf("held %s %s\n", r.dir, j.place.dir)
	return err
}
