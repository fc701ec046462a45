//go:build linux

package scenarios

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/spans"
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
		plugin: "refuser", fails: true, status: `^refuser exited 1.*no address left in pool blue`,
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
			s := *s
			s.T = t
			s.pods = 100 * int(c.plugin[0])
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

// tuning writes sysctls in the pod's namespace; otherwise only bridge does.
func TestSysctlsOfAPlugin(t *testing.T) {
	s := set(t, rig.Options{}, "")
	for name, tuning := range map[string]bool{"control": false, "tuned": true} {
		chain := []rig.Plugin{rig.Bridge()}
		if tuning {
			chain = append(chain, rig.Tuning(map[string]string{"net.core.somaxconn": "511"}))
		}
		s.network("sysctl-"+name, chain...)
		call := s.add(rig.PodOptions{}, false)
		call.accounted(t)
		found := ""
		for _, x := range append(call.Below("run", "delegate"), call.Below("sysctl")...) {
			for _, e := range x.Events {
				if a := spans.Texts(e.Attributes); a["cniscope.sysctl.key"] == "net/core/somaxconn" {
					found += x.Attrs["cni.plugin"] + " wrote " + a["cniscope.sysctl.value"]
				}
			}
			if x.Attrs["cniscope.sysctl.key"] == "net/core/somaxconn" {
				found += x.Attrs["cni.plugin"] + " wrote " + x.Attrs["cniscope.sysctl.value"]
			}
		}
		harness.Equal(t, found, map[bool]string{true: "tuning wrote 511"}[tuning], name)
	}
}

// eager is a static C plugin that reads its input immediately.
const eager = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
	static char in[65536];
	ssize_t n, all = 0;
	while ((n = read(0, in + all, sizeof(in) - 1 - all)) > 0) all += n;
	if (strcmp(getenv("CNI_COMMAND"), "ADD")) return 0;
	char *result = strstr(in, "\"prevResult\":"), *end = strstr(in, ",\"type\":");
	if (!result || !end) return 1;
	*end = 0;
	result += strlen("\"prevResult\":");
	return write(1, result, strlen(result)) < 0;
}`

// With detail = "always" a fast plugin is complete.
func TestAPluginThatReadsAtOnce(t *testing.T) {
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "eager.c"), filepath.Join(dir, "eager")
	harness.Check(t, os.WriteFile(source, []byte(eager), 0o600))
	if out, err := exec.Command("gcc", "-static", "-O2", "-o", binary, source).CombinedOutput(); err != nil {
		t.Skipf("no static C here: %v\n%s", err, out)
	}
	plugin, err := os.ReadFile(binary)
	harness.Check(t, err)
	s := set(t, rig.Options{Plugins: map[string][]byte{"eager": plugin}}, "[probe]\ndetail = \"always\"\n")
	s.network("eager-ones", rig.Bridge(), rig.Test("eager"))
	for range 20 {
		call := s.add(rig.PodOptions{}, false)
		x := call.plugin(t, "eager")
		if x.Attrs["cniscope.configured.type"] != "eager" || x.Attrs["cniscope.result.ips"] == "" {
			t.Errorf("%s: of its configuration %q, of its result %q", call.Attrs["k8s.pod.name"], x.Attrs["cniscope.configured.type"], x.Attrs["cniscope.result.ips"])
		}
	}
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

// rtnl returns the call's waits for the kernel's network lock.
func (c *call) rtnl() (found []*span) {
	for _, x := range c.Below("lock") {
		if x.Attrs["cniscope.lock.name"] == "rtnl" {
			found = append(found, x)
		}
	}
	return found
}
