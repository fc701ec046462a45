//go:build linux

package rig

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/test/harness"
)

func TestContainerdsOwnSpansAreReadBackFromJaeger(t *testing.T) {
	ctx := needRig(t)
	j := startJaeger(ctx, t)
	r := startRig(ctx, t, Options{OTLP: j.OTLP()})
	var ids []string
	for i := range 3 {
		begin := time.Now()
		id, err := r.RunPod(ctx, PodOptions{Name: fmt.Sprintf("web-%d", i), HostPorts: []HostPort{{Host: int32(18080 + i), Container: 80}}})
		harness.Check(t, err)
		t.Logf("RunPodSandbox took %s", time.Since(begin).Round(time.Millisecond))
		ids = append(ids, id)

		status, err := r.PodStatus(ctx, id)
		harness.Check(t, err)
		if !r.Networks()[0].Subnet.Contains(addr(t, status.Status.Network.Ip)) {
			t.Errorf("the pod's address is %s, the network's are %s", status.Status.Network.Ip, r.Networks()[0].Subnet)
		}
	}
	want := []string{"cni.Setup", "cni.asynchAttach", "cni.setup_pod_network", "cri.sandbox.run"}
	var spans []*tracepb.Span
	harness.Eventually(t, func() error {
		found, err := j.FindTraces(ctx, Query{Service: "containerd", Operation: "cri.sandbox.run"})
		spans = spansOf(found)
		for _, name := range want {
			if n := count(spans, name); err == nil && n < len(ids) {
				err = fmt.Errorf("%d spans %s", n, name)
			}
		}
		return err
	})
	for _, id := range ids {
		run := slices.IndexFunc(spans, func(s *tracepb.Span) bool {
			return s.Name == "cri.sandbox.run" && slices.ContainsFunc(s.Attributes, func(a attribute) bool { return a.Key == "sandbox.id" && a.Value.GetStringValue() == id })
		})
		if run < 0 {
			t.Fatalf("no span cri.sandbox.run of sandbox %s", id)
		}
		// Its trace has the networks: lo and eth0.
		one, err := j.Traces(ctx, hex.EncodeToString(spans[run].TraceId))
		harness.Check(t, err)
		if n := count(spansOf(one), "cni.asynchAttach"); n != 2 {
			t.Errorf("the trace of sandbox %s has %d spans cni.asynchAttach, not 2", id, n)
		}
	}
	harness.Check(t, r.StopPod(ctx, ids[0]))
	harness.Check(t, r.RemovePod(ctx, ids[0]))
}

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
	out, err := owner.StdoutPipe()
	harness.Check(t, err)
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
	before, err := processesOf(rigDir)
	harness.Check(t, err)
	if names := fmt.Sprint(before); !strings.Contains(names, "containerd (") || strings.Count(names, "pause (") != 2 || !strings.Contains(names, "sleep") {
		t.Errorf("alive after their owner: %v; expected containerd, two pauses and sleep among them", names)
	}
	groups, err := kubeletCgroups(rigDir)
	harness.Check(t, err)
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

func TestContainerdComesBackWithItsPods(t *testing.T) {
	ctx := needRig(t)
	r := startRig(ctx, t, Options{})
	id, err := r.RunPod(ctx, PodOptions{Name: "web"})
	harness.Check(t, err)
	first := r.ContainerdPID()
	r.Kill9Containerd()
	harness.Check(t, r.RestartContainerd(ctx))
	if r.ContainerdPID() == first || r.ContainerdPID() == 0 {
		t.Errorf("containerd's process id is %d, and was %d", r.ContainerdPID(), first)
	}
	status, err := r.PodStatus(ctx, id)
	harness.Check(t, err)
	harness.Equal(t, status.Status.State.String(), "SANDBOX_READY", "the pod of before", status.Status.State)
	harness.Check(t, r.StopPod(ctx, id))
}

func TestScriptsInTheChain(t *testing.T) {
	ctx := needRig(t)
	r := startRig(ctx, t, Options{
		Networks: []Network{{Plugins: []Plugin{Bridge(), Test("note"), Portmap()}}},
		Plugins:  map[string][]byte{"note": Script(`echo "$CNI_COMMAND $CNI_IFNAME" >>"$HOME/note"`)},
	})
	id, err := r.RunPod(ctx, PodOptions{Name: "web", HostPorts: []HostPort{{Host: 18080, Container: 80}}})
	harness.Check(t, err)
	harness.Check(t, r.StopPod(ctx, id))
	note, err := os.ReadFile(filepath.Join(r.Dir(), "note"))
	harness.Check(t, err)
	harness.Equal(t, string(note), "ADD eth0\nDEL eth0\n", "the script noted", note)

	harness.Check(t, r.AddPlugin("break", Script(`[ $CNI_COMMAND = DEL ] || fail 11 "try again"`)))
	harness.Check(t, r.SetNetworks(ctx, Network{Plugins: []Plugin{Bridge(), Test("break")}}))
	if _, err := r.RunPod(ctx, PodOptions{Name: "broken"}); err == nil || !strings.Contains(err.Error(), "try again") {
		t.Errorf("the failing plugin's pod: %v", err)
	}
}

func TestJaegerComesBackOnTheSamePorts(t *testing.T) {
	ctx := needRig(t)
	j := startJaeger(ctx, t)
	j.Kill9()
	if _, err := j.Services(ctx); err == nil {
		t.Error("it answers after SIGKILL")
	}
	otlp := j.OTLP()
	harness.Check(t, j.Restart(ctx))
	if j.OTLP() != otlp {
		t.Errorf("OTLP was at %s and is at %s", otlp, j.OTLP())
	}
}

func TestContainerdServesMetrics(t *testing.T) {
	ctx := needRig(t)
	r := startRig(ctx, t, Options{})
	answer, err := http.Get(r.MetricsURL())
	harness.Check(t, err)
	answer.Body.Close()
	harness.Equal(t, answer.StatusCode, http.StatusOK, r.MetricsURL(), "answered", answer.Status)
}

func TestADropInOfAnOlderVersionIsMerged(t *testing.T) {
	ctx := needRig(t)
	r := startRig(ctx, t, Options{DropIns: map[string]string{"10-nri.toml": `version = 2
[plugins."io.containerd.nri.v1.nri"]
  disable = true
`}})
	if _, err := os.Stat(r.NRISocket()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("NRI listens although the drop-in disables it (%v)", err)
	}
	// The rest of the configuration stays.
	_, err := r.RunPod(ctx, PodOptions{Name: "web"})
	harness.Check(t, err)
}

func TestPodsInParallelOnTwoRigs(t *testing.T) {
	ctx := needRig(t)
	rigs := []*Rig{startRig(ctx, t, Options{}), startRig(ctx, t, Options{})}
	const each = 8
	errs := make(chan error)
	for _, r := range rigs {
		for i := range each {
			go func() {
				id, err := r.RunPod(ctx, PodOptions{Name: fmt.Sprintf("web-%d", i)})
				if err == nil {
					err = errors.Join(r.StopPod(ctx, id), r.RemovePod(ctx, id))
				}
				errs <- err
			}()
		}
	}
	for range len(rigs) * each {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
