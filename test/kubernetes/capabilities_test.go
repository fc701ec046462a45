//go:build linux

package kubernetes

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// A loss is the symptom of a missing capability.
type loss struct {
	// fails is the termination message with which cniscope exits.
	fails string
	// says is logged only without the capability.
	says string
	// unchecked is a check that doctor in the pod cannot run.
	unchecked string
}

var losses = map[string]loss{
	"BPF":             {fails: "the permission to load BPF programs"},
	"PERFMON":         {fails: "the permission to load BPF programs"},
	"SYS_PTRACE":      {says: `"feature unavailable" feature="calls in progress at start"`},
	"DAC_READ_SEARCH": {says: `"feature unavailable" feature="CNI configuration"`},
	"NET_ADMIN":       {unchecked: "service-rules"},
}

// The node needs every capability: another user's CNI configuration, and a call in progress at cniscope's start.
func TestEveryCapabilityIsNeeded(t *testing.T) {
	hold := filepath.Join(t.TempDir(), "hold")
	harness.Check(t, os.WriteFile(hold, nil, 0o600))
	c := start(t, rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(), rig.Test("hold")}}},
		Plugins:  map[string][]byte{"hold": rig.Script(fmt.Sprintf("while [ -e %s ]; do sleep 0.05; done", hold))},
	})
	configurations := harness.Must(filepath.Glob(filepath.Join(c.rig.CNIConfDir(), "*.conflist")))(c)
	for _, file := range configurations {
		harness.Check(c, os.Chown(file, 4711, 4711))
		harness.Check(c, os.Chmod(file, 0o600))
	}
	c.serviceAccount("default")
	c.run(c.web("held"), func(*pod) error {
		return c.runs("hold")
	})
	t.Cleanup(func() { _ = os.Remove(hold) })

	daemonSet := c.apply()
	added := capabilities(c.podOf(daemonSet, "any", nil))
	if want := slices.Sorted(maps.Keys(losses)); !slices.Equal(slices.Sorted(slices.Values(added)), want) {
		t.Errorf("the manifest adds %v, while what it is for is known of %v", added, want)
	}

	t.Run("with all", func(t *testing.T) {
		c := c.in(t)
		p := c.run(c.podOf(daemonSet, "cniscope-with-all", nil), running)
		defer c.remove(p)
		c.logged(p, "observing CNI calls")
		if strings.Contains(c.log(p), "in_progress=0") {
			t.Errorf("it has not found the call in progress:\n%s", c.log(p))
		}
		for name, loss := range losses {
			if loss.says != "" && strings.Contains(c.log(p), loss.says) {
				t.Errorf("it says %q though it has %s:\n%s", loss.says, name, c.log(p))
			}
		}
		if out, _ := c.exec(p, "/cniscope", "doctor"); strings.Contains(out, "could not check") {
			t.Errorf("there is what doctor cannot check:\n%s", out)
		}
		c.confined(p, added)
	})
	for _, name := range added {
		t.Run("without "+name, func(t *testing.T) {
			c := c.in(t)
			o := c.podOf(daemonSet, "cniscope-without-"+strings.ToLower(strings.ReplaceAll(name, "_", "-")), func(pod object) {
				setCapabilities(pod, slices.DeleteFunc(slices.Clone(added), func(s string) bool { return s == name }))
			})
			switch loss := losses[name]; {
			case loss.fails != "":
				p := c.run(o, ended)
				defer c.remove(p)
				if message, _ := ending(p); !strings.Contains(message, loss.fails) {
					t.Errorf("it ended, and left the message %q, which does not say %q", message, loss.fails)
				}
			case loss.says != "":
				p := c.run(o, running)
				defer c.remove(p)
				c.logged(p, loss.says)
			case loss.unchecked != "":
				p := c.run(o, running)
				defer c.remove(p)
				out, _ := c.exec(p, "/cniscope", "doctor")
				if !regexp.MustCompile(`\? (.+, )?` + loss.unchecked + `(, .+)?: could not check`).MatchString(out) {
					t.Errorf("doctor does not say that it could not check %s:\n%s", loss.unchecked, out)
				}
			}
		})
	}
}

func container(pod object) object { return pod.List("spec", "containers")[0] }

func capabilities(pod object) (names []string) {
	all, _ := container(pod).At("securityContext", "capabilities", "add").([]any)
	for _, name := range all {
		names = append(names, fmt.Sprint(name))
	}
	return names
}

func setCapabilities(pod object, names []string) {
	container(pod).In("securityContext", "capabilities")["add"] = names
}
