//go:build linux

package rig

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func TestNothingIsLeft(t *testing.T) {
	hostPorts := Conf{"portMappings": true}
	chains := map[string][]Plugin{
		"iptables": {Bridge(), Portmap(), Firewall(), Tuning(map[string]string{"net.core.somaxconn": "500"})},
		"nftables and IPv6": {
			DualStack(Conf{"ipMasqBackend": "nftables"}),
			Use(Conf{"type": "portmap", "backend": "nftables", "capabilities": hostPorts}),
			Firewall(),
		},
	}
	for backend, chain := range chains {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, containerd crashed: %t", backend, crash), func(t *testing.T) {
				ctx := needRig(t)
				before := sharedParts(t)
				r := startRig(ctx, t, Options{Networks: []Network{{Plugins: chain}}})
				for i := range 2 {
					_, err := r.RunPod(ctx, PodOptions{Name: fmt.Sprintf("web-%d", i), HostPorts: []HostPort{{Host: int32(18080 + i), Container: 80}}})
					harness.Check(t, err)
				}
				dir, n := r.dir, r.place.n
				if left := leftovers(t, dir, n, before); len(left) == 0 {
					t.Error("a running rig with pods shows nothing: the check below would prove nothing")
				}
				if crash {
					r.Kill9Containerd()
				}
				harness.Check(t, r.Close())
				if left := leftovers(t, dir, n, before); len(left) > 0 {
					t.Errorf("left after Close:\n%s", strings.Join(left, "\n"))
				}
			})
		}
	}
}

func TestTheNextStartSweepsWhatAKilledOwnerLeft(t *testing.T) {
	ctx := needRig(t)
	needProgram(t, "jaeger")
	shared := sharedParts(t)
	owner := exec.CommandContext(ctx, os.Args[0])
	owner.Env = append(os.Environ(), holdVariable+"=1")
	owner.Stderr = os.Stderr
	out := harness.Must(owner.StdoutPipe())(t)
	harness.Check(t, owner.Start())
	var rigDir, jaegerDir string
	lines := bufio.NewScanner(out)
	for rigDir == "" && lines.Scan() {
		_, _ = fmt.Sscanf(lines.Text(), "held %s %s", &rigDir, &jaegerDir)
	}
	harness.Check(t, owner.Process.Kill())
	_ = owner.Wait()
	if rigDir == "" {
		t.Fatal("the owner did not come as far as holding a rig: see its error above")
	}
	before := harness.Must(processesOf(rigDir))(t)
	if names := fmt.Sprint(before); !strings.Contains(names, "containerd (") || strings.Count(names, "pause (") != 2 || !strings.Contains(names, "sleep") {
		t.Errorf("alive after their owner: %v; expected containerd, two pauses and sleep among them", names)
	}
	groups := harness.Must(kubeletCgroups(rigDir))(t)
	if !slices.ContainsFunc(groups, cgroupExists) {
		t.Errorf("%v: none of them exists", groups)
	}

	r := startRig(ctx, t, Options{})
	for _, p := range before {
		// A zombie has no executable.
		if _, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID)); err == nil {
			t.Errorf("%v is alive after the next Start", p)
		}
	}
	if _, err := os.Stat(jaegerDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there after the next Start", jaegerDir)
	}
	for _, group := range groups {
		if cgroupExists(group) {
			t.Errorf("cgroup %s is there after the next Start", group)
		}
	}
	n := r.place.n
	harness.Check(t, r.Close())
	if left := leftovers(t, rigDir, n, shared); len(left) > 0 {
		t.Errorf("left after sweep and Close:\n%s", strings.Join(left, "\n"))
	}
}
