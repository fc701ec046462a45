//go:build linux

package rig

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

func needRig(t *testing.T) context.Context {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a rig needs root: it makes namespaces, mounts and links")
	}
	needProgram(t, runtimePrograms...)
	return harness.Context(t)
}

func needProgram(t *testing.T, programs ...string) {
	t.Helper()
	if _, err := Tools(programs...); errors.Is(err, ErrNoTools) {
		t.Skip(err)
	}
}

func startRig(ctx context.Context, t *testing.T, o Options) *Rig {
	t.Helper()
	// Another containerd than the pinned one.
	o.Containerd = os.Getenv("CNISCOPE_TEST_CONTAINERD")
	o.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	begin := time.Now()
	r := harness.Must(Start(ctx, o))(t)
	t.Cleanup(func() { harness.Check(t, r.Close()) })
	t.Logf("Start took %s", time.Since(begin).Round(time.Millisecond))
	return r
}

func sharedParts(t *testing.T) []string {
	t.Helper()
	names := harness.Must(furniture())(t)
	return names
}

func leftovers(t *testing.T, dir string, n int, before []string) []string {
	t.Helper()
	var left []string
	add := func(kind string, names ...string) {
		for _, name := range names {
			left = append(left, kind+" "+name)
		}
	}
	processes := harness.Must(processesOf(dir))(t)
	for _, p := range processes {
		add("process", p.String())
	}
	mounts := harness.Must(mountsBelow(dir))(t)
	add("mount", mounts...)
	for _, pattern := range []string{dir, "/sys/fs/cgroup/" + cgroupName(dir), "/sys/fs/cgroup/*/" + cgroupName(dir)} {
		found := harness.Must(filepath.Glob(pattern))(t)
		add("file", found...)
	}
	bridges, ports, err := linksOf(n)
	harness.Check(t, err)
	for _, link := range append(bridges, ports...) {
		add("link", link.Attrs().Name)
	}
	for _, program := range []string{"iptables-save", "ip6tables-save"} {
		save := harness.Must(exec.Command(program).Output())(t)
		for _, table := range parseTables(string(save)) {
			for _, rule := range table.rules {
				if within(rule, subnets(n)) {
					add("rule", rule)
				}
			}
		}
	}
	tables := harness.Must(nftTables())(t)
	for _, line := range strings.Split(nftWithoutSubnets(tables, subnets(n)), "\n") {
		if line != "" {
			add("nft", line)
		}
	}
	// Shared parts go with the last rig, unless they existed before.
	if rigs, err := placesOf(rigKind); err == nil && len(rigs) == 0 {
		for _, name := range sharedParts(t) {
			if !slices.Contains(before, name) {
				add("firewall", name)
			}
		}
	}
	return left
}

func cgroupExists(name string) bool {
	v1, _ := filepath.Glob("/sys/fs/cgroup/*/" + name)
	_, v2 := os.Stat("/sys/fs/cgroup/" + name)
	return len(v1) > 0 || v2 == nil
}
