//go:build linux

package scenarios

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

const conditionWords = "unable to setup interface datapath: unable to install ip rules and routes: unable to find ifindex for interface MAC: " +
	"unable to list interfaces: timed out waiting for the condition"

func init() {
	doings["ADD dump"] = func() error {
		for { // on a busy node a hundred dumps may come through
			if _, err := netlink.LinkList(); errors.Is(err, netlink.ErrDumpInterrupted) {
				return errors.New(conditionWords)
			}
		}
	}
	doings["ADD condition"] = failing("failed to wait for the pod's annotation: timed out waiting for the condition")
	doings["ADD macvlan"] = failing("failed to create macvlan: device or resource busy")
	doings["ADD big"] = delegates("tuning", "CNI_ARGS="+strings.Repeat("x", 200_000))
	doings["ADD absent"] = delegates("absent", "CNI_ARGS=x")
	doings["ADD throttled"] = func() error {
		c, err := net.Dial("tcp", apiServer)
		if err != nil {
			return err
		}
		defer c.Close()
		for range 20 {
			time.Sleep(100 * time.Millisecond)
			if _, err = c.Write([]byte("GET /")); err == nil {
				_, err = c.Read(make([]byte, 5))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	doings["ADD refused"] = func() error {
		_, err := net.Dial("tcp", weaver)
		return fmt.Errorf("unable to allocate IP address: Post http://%s/ip/5c015992ca437f20: %w", weaver, err)
	}
	doings["ADD killed"] = answered("RPC failed; request ip return 500 configure nic failed add nic to ovs failed signal: killed: ")
	doings["ADD failed"] = answered("RPC failed; request ip return 500 configure nic failed")
	doings["ADD hasty"] = func() error {
		answer, err := overUnix(time.Second).Post("http://pluginapi/cmdadd", "application/json", nil)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	}
}

func delegates(plugin, variable string) func() error {
	return func() error {
		dir, _, _ := strings.Cut(os.Getenv("CNI_PATH"), ":")
		c := exec.Command(filepath.Join(dir, plugin))
		c.Env = append(os.Environ(), variable)
		if err := c.Run(); err != nil {
			return fmt.Errorf("delegate add: %w", err)
		}
		return nil
	}
}

// answered asks the agent and fails, whatever it answers.
func answered(words string) func() error {
	return func() error {
		_ = doings["ADD cilium"]()
		return errors.New(words)
	}
}

// churn has many interfaces, and others that come and go.
func churn(s *scene) func() {
	veth := func(name string, i int) *netlink.Veth {
		return &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprint("cnisc-", name, i)}, PeerName: fmt.Sprint("cnisp-", name, i)}
	}
	ctx, stop := context.WithCancel(s.ctx)
	done := make(chan struct{})
	for i := range 40 {
		harness.Check(s.T, netlink.LinkAdd(veth("still", i)))
	}
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			_ = netlink.LinkAdd(veth("new", i%7))
			_ = netlink.LinkDel(veth("new", i%7))
		}
	}()
	return func() {
		stop()
		<-done
		for i := range 40 {
			_ = netlink.LinkDel(veth("still", i))
		}
	}
}

// echoes answers each request at once with as many bytes.
var echoes = serving("tcp", apiServer, func(c net.Conn) { _, _ = io.Copy(c, c) })

// lateReports are incidents in which a plugin gave up, or what it asked for was refused; each stands above its twin.
func lateReports() []incident {
	runs := func(command ...string) func(*scene) func() {
		return func(s *scene) func() {
			return answers(s, func() { _ = exec.Command(command[0], command[1:]...).Run() }, 500)
		}
	}
	locked := func(s *scene) func() {
		holder := exec.Command("flock", "/run/xtables.lock", "-c", "echo; exec sleep 4")
		held := harness.Must(holder.StdoutPipe())(s.T)
		harness.Check(s.T, holder.Start())
		_, _ = held.Read(make([]byte, 1))
		stop := runs("ip6tables-legacy", "-w", "5", "-t", "nat", "-S")(s)
		return func() { stop(); _ = holder.Wait() }
	}
	leaving := func(s *scene) func() { // the agent answers while a process that it started goes on
		return answers(s, func() {
			c := exec.Command("tail", "-f", "/dev/null")
			harness.Check(s.T, c.Start())
			time.AfterFunc(3*time.Second, func() { _ = c.Process.Kill(); _ = c.Wait() })
			time.Sleep(time.Second)
		}, 500)
	}
	all := []incident{{
		id: "dump-interrupted", chain: does("cilium-cni", "dump"), before: churn, says: []string{"unable to list interfaces"}, remedy: "fewer pods at once", never: "API",
	}, {
		id: "condition-twin", chain: does("cilium-cni", "condition"), says: []string{"the condition"}, never: "came and went",
	}, {
		id: "master-has-another-kind", chain: does("multus", "macvlan"), says: []string{"device or resource busy"}, remedy: "macvlan or ipvlan, not both", never: "lock",
	}, {
		id: "argument-list-too-long", chain: does("multus", "big"), says: []string{"tuning: argument list too long"}, remedy: "shorten CNI_ARGS", never: "install",
	}, {
		id: "program-twin", chain: does("multus", "absent"), says: []string{"absent: no such file or directory"}, never: "shorten",
	}, {
		id: "agent-waits-for-xtables-lock", chain: does("cilium-cni", "hasty"), before: locked,
		says: []string{"deadline exceeded", "ran ip6tables-legacy, while plugin cilium-cni waited"}, never: "rate limit",
	}, {
		id: "answer-twin", chain: does("cilium-cni", "failed"), before: leaving, says: []string{"plugin cilium-cni waited for"}, never: "tail",
	}, {
		id: "address-is-there", chain: []rig.Plugin{rig.Bridge(rig.Conf{"ipMasq": false}), rig.Test("twice")},
		says: []string{"file exists", "its last command, ip, exited 2"}, remedy: "all but one plugin", never: "rm ",
	}, {
		id: "command-killed-for-memory", chain: does("cilium-cni", "killed"), before: func(s *scene) func() {
			ofctl := incidentDir + "/ovs-ofctl"
			_ = os.Symlink(harness.Must(exec.LookPath("sh"))(s.T), ofctl)
			return runs(ofctl, "-c", "kill -9 $$")(s)
		},
		says: []string{"signal: killed", "before that, a command of its agent, ovs-ofctl, was killed by SIGKILL after "}, remedy: "raise the memory limit", never: "strace",
	}, {
		id: "killed-twin", chain: does("cilium-cni", "failed"), before: runs("true"), says: []string{"configure nic failed\""}, never: "memory",
	}}
	for i := range all {
		all[i].fails, all[i].cause = true, "plugin_error"
	}
	return append(all, incident{
		id: "no-agent-at-its-port", chain: does("weave-net", "refused"), fails: true, cause: "agent_refused", says: []string{weaver}, remedy: "start weave", never: "cilium",
	}, incident{
		id: "client-side-throttling", chain: does("multus", "throttled"), before: echoes, cause: "api_server", says: []string{apiServer}, remedy: "raise the limit of the plugin's client", never: "etcd",
	})
}

// doctor names a cached result without content, with which containerd 1.7 cannot stop a sandbox; the remedy helps.
func TestACachedResultThatIsEmpty(t *testing.T) {
	s := set(t, rig.Options{Containerd: scope.Containerd(t, "containerd-1.7")}, slowly)
	s.network("cached", rig.Bridge())
	id := harness.Must(s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: "cached-1"}))(t)
	if said := s.ask("doctor"); strings.Contains(said, "cut off") {
		t.Errorf("of a sound one: %s", said)
	}
	files := harness.Must(filepath.Glob(filepath.Join(s.rig.Dir(), "cover/cni/results/cached-"+id+"*")))(t)
	if len(files) != 1 {
		t.Fatalf("results: %v", files)
	}
	harness.Check(t, os.Truncate(files[0], 0))
	harness.Check(t, os.Chtimes(files[0], time.Now(), time.Now().Add(-time.Hour)))
	if err := s.rig.StopPod(s.ctx, id); err == nil || !strings.Contains(err.Error(), "cached result") {
		t.Fatalf("it stopped: %v", err)
	}
	harness.Says(t, s.ask("doctor"), "leaked-networks: libcni's cached result of 1 network attachment is empty or cut off", "of sandbox "+id,
		"→ rm /var/lib/cni/results/"+filepath.Base(files[0]))
	harness.Check(t, os.Remove(files[0]))
	harness.Check(t, s.rig.StopPod(s.ctx, id))
}
