//go:build linux

package scenarios

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/spans"
)

// do performs further behavior as the network's configuration says.
func (a *agentd) do(request map[string]*structpb.Value) (*structpb.Struct, error) {
	var conf struct {
		Does     string
		Delegate json.RawMessage
	}
	if err := json.Unmarshal([]byte(request["network_configuration"].GetStringValue()), &conf); err != nil {
		return nil, err
	}
	container := request["container_id"].GetStringValue()
	switch conf.Does {
	case "forks": // a helper in its own session
		cmd := exec.Command(filepath.Join(a.bin, "helperd"), container)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
	case "dies": // the first time
		if f, err := os.OpenFile(a.mark, os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			f.Close()
			_ = a.run(container, "ovs-vsctl", "list", "Interface", container[:12])
			os.Exit(1)
		}
	case "delegates": // like Multus' daemon
		file := filepath.Join(request["path"].GetStringValue(), "bridge")
		cmd := exec.Command(file)
		cmd.Stdin = strings.NewReader(string(conf.Delegate))
		for name, key := range map[string]string{"CNI_CONTAINERID": "container_id", "CNI_NETNS": "netns", "CNI_IFNAME": "ifname", "CNI_ARGS": "args", "CNI_PATH": "path"} {
			cmd.Env = append(cmd.Env, name+"="+request[key].GetStringValue())
		}
		cmd.Env = append(cmd.Env, "CNI_COMMAND=ADD", "PATH="+os.Getenv("PATH"))
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("bridge: %w: %s", err, out)
		}
		return structpb.NewStruct(map[string]any{"result": string(out)})
	}
	return a.add(request)
}

// Unusual agents' traces are right, and following them ends.
func TestWhatElseAgentsDo(t *testing.T) {
	s := set(t, rig.Options{}, "[metrics]\nlisten = \"127.0.0.1:0\"\n")
	address := "unix " + filepath.Join(t.TempDir(), "agent.sock")
	agent := s.startAgent(address, 100*time.Millisecond, 0)
	ask := func(t *testing.T, does string) *call {
		s := s.in(t)
		s.network(does, func(n rig.Net) rig.Conf {
			conf := rig.Conf{"type": "remote", "agent": address, "does": does}
			if does == "delegates" {
				conf["delegate"] = rig.Conf{"cniVersion": "1.0.0", "name": "inner", "type": "bridge", "bridge": n.Bridge, "ipam": rig.HostLocal(n.DataDir, n.Subnet)}
			}
			return conf
		})
		call := s.add(rig.PodOptions{}, false)
		call.accounted(t)
		return call
	}

	t.Run("a helper that it forks", func(t *testing.T) {
		call := ask(t, "forks")
		asked := call.Below("agent")
		helper := named(call.Below("command"), "helperd")
		if len(asked) != 1 || len(helper) != 1 {
			t.Fatalf("%d calls of the agent, %d helpers", len(asked), len(helper))
		}
		if h := helper[0]; h.ParentSpanID != asked[0].SpanID || h.Attrs["cniscope.attribution"] != "certain" {
			t.Errorf("it is below %s: %v", h.ParentSpanID, h.Attrs)
		}
		goesOn := slices.DeleteFunc(named(call.Below("command"), "sleep"), func(x *span) bool { return x.Attrs["process.pid"] != helper[0].Attrs["process.pid"] })
		if len(goesOn) != 1 || goesOn[0].Attrs["cniscope.outlived"] != "true" || goesOn[0].Took() > call.Took() {
			t.Errorf("what it became: %d, %v", len(goesOn), goesOn)
		}
	})
	t.Run("a connection that outlives the call", func(t *testing.T) {
		call := ask(t, "holds")
		asked, held := call.Below("agent"), named(call.Below("command"), "sleep")
		if len(asked) != 1 || asked[0].Took() > call.Took() {
			t.Errorf("%d calls of the agent", len(asked))
		}
		held = slices.DeleteFunc(held, func(x *span) bool { return x.Attrs["cniscope.outlived"] != "true" })
		harness.Equal(t, len(held), 1, "children that outlive the plugin")
	})
	t.Run("a plugin that it runs", func(t *testing.T) {
		call := ask(t, "delegates")
		runs := map[string]int{}
		for _, x := range call.Below("run", "delegate") {
			runs[x.Name]++
		}
		if len(runs) != 3 || runs["remote ADD"] != 1 || runs["bridge ADD"] != 1 || runs["host-local ADD"] != 1 {
			t.Errorf("runs: %v", runs)
		}
		calls := 0
		for _, x := range call.All {
			if x.Name == "CNI ADD" && x.Attrs["sandbox.id"] == call.Attrs["sandbox.id"] && x.Attrs["cni.ifname"] == "eth0" {
				calls++
			}
		}
		harness.Equal(t, calls, 1, "calls of one")
	})
	t.Run("its death in the middle of a call", func(t *testing.T) {
		go func() {
			<-agent.said // it died
			s.startAgent(address, 10*time.Millisecond, 0)
		}()
		call := ask(t, "dies")
		asked := call.Below("agent")
		if len(asked) < 2 {
			t.Fatalf("%d calls of the agent", len(asked))
		}
		ended := slices.ContainsFunc(asked[0].Events, func(e spans.Event) bool { return e.Name == "the agent ended" })
		if !ended || asked[0].Attrs["cniscope.agent_pid"] == asked[len(asked)-1].Attrs["cniscope.agent_pid"] {
			t.Errorf("the first call's end: %v; both are of pid %s", asked[0].Events, asked[0].Attrs["cniscope.agent_pid"])
		}
		before, after := 0, 0
		for _, x := range call.Below("command") {
			switch x.ParentSpanID {
			case asked[0].SpanID:
				before++
			case asked[len(asked)-1].SpanID:
				after++
			}
		}
		if before != 1 || after != 4 {
			t.Errorf("%d commands before its death, %d after", before, after)
		}
	})

	// Helpers are followed for 30 s.
	harness.Eventually(s, func() error {
		if n := s.scope.Scrape(s)["cniscope_probe_processes"]; n != 0 {
			return fmt.Errorf("%v processes are still followed", n)
		}
		return nil
	})
}

func named(all []*span, name string) (found []*span) {
	for _, x := range all {
		if x.Name == name {
			found = append(found, x)
		}
	}
	return found
}
