//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"

	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/tied"
)

// emptyName is this program's name as an empty NRI plugin.
const emptyName = "bench-empty"

type empty struct{ *exec.Cmd }

type nothing struct{}

func (nothing) RunPodSandbox(context.Context, *api.PodSandbox) error    { return nil }
func (nothing) StopPodSandbox(context.Context, *api.PodSandbox) error   { return nil }
func (nothing) RemovePodSandbox(context.Context, *api.PodSandbox) error { return nil }
func (nothing) Synchronize(context.Context, []*api.PodSandbox, []*api.Container) ([]*api.ContainerUpdate, error) {
	fmt.Println("ready")
	return nil, nil
}

func asEmpty(ctx context.Context) error {
	s, err := stub.New(nothing{}, stub.WithPluginName(emptyName), stub.WithPluginIdx(os.Args[2]), stub.WithSocketPath(os.Args[1]))
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// The first plugin that the runtime calls is asleep more often: empty ones are on both sides.
const before, behind = "89", "91"

func startEmpty(ctx context.Context, r *rig.Rig, index string) (*empty, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, r.NRISocket(), index)
	cmd.Args[0] = emptyName
	cmd.Env = append(os.Environ(), r.Env())
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := tied.Start(cmd); err != nil {
		return nil, err
	}
	if !bufio.NewScanner(out).Scan() {
		return nil, errors.Join(errors.New("the empty NRI plugin did not register"), cmd.Wait())
	}
	return &empty{cmd}, nil
}

func (e *empty) stop() {
	_ = e.Process.Kill()
	_ = e.Wait()
}

var (
	latencyLine = regexp.MustCompile(`^containerd_nri_plugin_latency\w*_(sum|count)\{(.*)\}$`)
	pluginLabel = regexp.MustCompile(`plugin\w*="([^"]*)"`)
)

func pluginLatency(ctx context.Context, url string) ([]row, error) {
	values, err := scraped(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("containerd's metrics: %w", err)
	}
	sums, counts := map[string]float64{}, map[string]float64{}
	for series, value := range values {
		found := latencyLine.FindStringSubmatch(series)
		if found == nil {
			continue
		}
		label := pluginLabel.FindStringSubmatch(found[2])
		if label == nil {
			return nil, fmt.Errorf("containerd's metrics: cannot read %q", series)
		}
		into := sums
		if found[1] == "count" {
			into = counts
		}
		into[label[1]] += value
	}
	var rows []row
	for _, plugin := range []struct{ name, said string }{
		{before + "-" + emptyName, "an empty plugin before it"},
		{"90-cniscope", "cniscope"},
		{behind + "-" + emptyName, "an empty plugin behind it"},
	} {
		count := counts[plugin.name]
		if count == 0 {
			return nil, fmt.Errorf("containerd's metrics have no %s: %v", plugin.name, counts)
		}
		rows = append(rows, row{
			figure: "containerd_nri_plugin_latency, " + plugin.said, value: 1e6 * sums[plugin.name] / count, unit: "µs",
			note: fmt.Sprintf("mean: %.0f calls, %.1f ms in all", count, 1e3*sums[plugin.name]),
		})
	}
	return rows, nil
}
