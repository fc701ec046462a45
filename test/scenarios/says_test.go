//go:build linux

package scenarios

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

func (c *call) plugin(t *testing.T, name string) *span {
	t.Helper()
	for _, x := range c.Below("run", "delegate") {
		if x.Attrs["cni.plugin"] == name {
			return x
		}
	}
	t.Fatalf("no plugin %s below the call", name)
	return nil
}

// A plugin's answer is on its span: an error with its code, or invalid JSON.
func TestWhatAPluginAnswers(t *testing.T) {
	s := set(t, rig.Options{Plugins: map[string][]byte{
		"refuser": rig.Script(`[ $CNI_COMMAND = ADD ] && fail 11 "no address left in pool blue"`),
		"babbler": rig.Script(`[ $CNI_COMMAND = ADD ] && { echo "token=canary, not JSON"; exit 0; }`),
		"shell":   rig.Script(`:`),
	}}, "")
	for _, c := range []struct {
		plugin string
		fails  bool
		status string
		Attrs  map[string]string
	}{{
		plugin: "refuser", fails: true, status: `^plugin refuser failed \(code .*no address left in pool blue`,
		Attrs: map[string]string{"cni.error.code": `^11$`, "cni.error.message": `^no address left in pool blue$`, "cniscope.configured.type": `^refuser$`},
	}, {
		plugin: "babbler", fails: true, status: `babbler`,
		Attrs: map[string]string{"cniscope.result_invalid": `^no valid JSON at byte 2 of 22$`, "cni.error.code": `^$`},
	}, {
		plugin: "shell", status: `^$`,
		Attrs: map[string]string{
			"cniscope.configured.type": `^shell$`, "cni.version": `^1\.0\.0$`, "cniscope.result_invalid": `^$`, "cni.error.code": `^$`,
			"cniscope.result.ips": `\d+\.\d+\.\d+\.\d+/`, "cniscope.result.interfaces": `eth0`,
		},
	}} {
		t.Run(c.plugin, func(t *testing.T) {
			s := s.in(t)
			s.network("with-"+c.plugin, rig.Bridge(), rig.Test(c.plugin))
			call := s.add(rig.PodOptions{}, c.fails)
			if !regexp.MustCompile(c.status).MatchString(call.Status.Message) {
				t.Errorf("the call's status is %q, want %s", call.Status.Message, c.status)
			}
			plugin := call.plugin(t, c.plugin)
			for key, want := range c.Attrs {
				if !regexp.MustCompile(want).MatchString(plugin.Attrs[key]) {
					t.Errorf("%s is %q, want %s", key, plugin.Attrs[key], want)
				}
			}
			harness.Equal(t, call.Attrs["cni.name"], "with-"+c.plugin, "the network is called")
			if text, err := os.ReadFile(s.spans); err != nil || strings.Contains(string(text), "canary") {
				t.Errorf("raw output left cniscope (%v)", err)
			}
		})
	}
}

// The plugin's message is on a call that fails at once, also on the first one, and while system-call tracing is off.
func TestTheWordsOfAFastFailure(t *testing.T) {
	s := set(t, rig.Options{Plugins: map[string][]byte{
		// Tracing needs some milliseconds to begin again, and this script alone ends sooner.
		"other": rig.Script(`[ "$CNI_COMMAND" != ADD ] || { sleep 0.05; fail 999 "cni0 has another owner"; }`),
	}}, "[probe]\nlinger = \"1s\"\n")
	n := s.network("moved", rig.Bridge())
	for _, args := range [][]string{
		{"link", "add", n.Bridge, "type", "bridge"}, {"link", "set", n.Bridge, "up"}, {"addr", "add", "10.244.1.1/24", "dev", n.Bridge},
	} {
		harness.Check(t, exec.Command("ip", args...).Run())
	}
	for range 5 {
		call := s.add(rig.PodOptions{}, true)
		time.Sleep(2 * time.Second) // longer than the linger
		// Names in it may be unknown: the plugin may read its configuration before tracing begins.
		harness.Says(t, call.Attrs["cniscope.verdict"], "already has an IP address different from ")
		harness.Says(t, call.Attrs["cniscope.remedy"], "ip link delete "+n.Bridge)
		harness.Equal(t, call.Attrs["cniscope.report"], "flannel-io/flannel#1850", "the report")
		harness.Equal(t, call.Attrs["cniscope.cause"], "plugin_error", "the cause")
	}
	s.network("other", rig.Test("other"))
	call := s.add(rig.PodOptions{}, true)
	harness.Says(t, call.Attrs["cniscope.verdict"], `"cni0 has another owner"`)
	harness.Equal(t, call.Attrs["cniscope.remedy"], "", "the remedy of other words")
}

// A sandbox that fails after its plugins succeeded is the runtime's failure.
func TestASandboxThatFailsAfterItsPlugins(t *testing.T) {
	s := set(t, rig.Options{}, "")
	s.network("pods", rig.Bridge())
	s.add(rig.PodOptions{}, false) // tells that the runtime reports sandboxes by NRI
	call := s.add(rig.PodOptions{Config: func(c *cri.PodSandboxConfig) {
		c.Linux.Sysctls = map[string]string{"kernel.nothing": "1"}
	}}, true)
	harness.Equal(t, call.Attrs["cniscope.cause"], "oci_runtime", "the cause")
	harness.Says(t, call.Attrs["cniscope.verdict"], "every plugin succeeded, but the runtime removed the network")
	harness.Says(t, call.Attrs["cniscope.verdict"], "; runc create exited 1")
	harness.Says(t, call.Attrs["cniscope.remedy"], "kubectl describe pod")
}

// Thirty pods wait for rtnl and learn its holder; a single pod does not.
func TestABurstOfPodsWaitsForTheKernel(t *testing.T) {
	s := set(t, rig.Options{}, "")
	s.network("burst", rig.Bridge(), rig.Portmap(), rig.Firewall())
	alone := s.add(rig.PodOptions{}, false)
	alone.accounted(t)
	if n := len(alone.rtnl()); n > 2 {
		t.Errorf("a pod alone waited for rtnl %d times", n)
	}
	s.crowd("burst", 30)
	waits, held, most := 0, 0, 0.0
	for i := range 30 {
		call := s.call(fmt.Sprintf("burst-%d", i))
		call.accounted(t)
		for _, x := range call.rtnl() {
			waits++
			most = max(most, x.Took())
			if x.Attrs["cniscope.lock.holder_name"] != "" {
				held++
			}
		}
		if n := call.Attrs["cniscope.concurrent_calls"]; n == "0" || n == "" {
			t.Errorf("burst-%d was alone", i)
		}
	}
	s.blamed()
	t.Logf("%d waits for rtnl of 1 ms or more, the longest %.1f ms; of %d the holder is known", waits, most, held)
	if waits == 0 || held < waits*9/10 {
		t.Errorf("of %d waits %d know who had it", waits, held)
	}
}

func (c *call) rtnl() (found []*span) {
	for _, x := range c.Below("lock") {
		if x.Attrs["cniscope.lock.name"] == "rtnl" {
			found = append(found, x)
		}
	}
	return found
}
