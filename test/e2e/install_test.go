//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

var nodeFolders = []string{"/etc/containerd", "/etc/cniscope", "/etc/systemd/system", "/usr/local/bin", "/var/lib/cniscope"}

var nodeState = []string{"/run/cniscope", "/run/systemd"}

// By docs/install.md, for each containerd, as service and as plugin.
func TestInstalledByTheLinesOfTheDocuments(t *testing.T) {
	for _, containerd := range []string{"", "containerd-2.3", "containerd-1.7"} {
		for _, as := range []string{"service", "plugin"} {
			t.Run(strings.TrimSpace(containerd+" "+as), func(t *testing.T) {
				n := setNode(t, containerd)
				before := n.files()
				line := "install --as " + as
				if containerd == "containerd-1.7" {
					line += " --edit-config"
				}
				out := n.cniscope(line)
				harness.Says(t, out, "new       /usr/local/bin/cniscope", "containerd has to be restarted", "say where the spans go")
				if out := n.cniscope(line); !strings.Contains(out, "containerd has to be restarted") || strings.Contains(out, "new ") {
					t.Errorf("before the restart it says:\n%s", out)
				}
				n.setEndpoint()
				n.restart()
				if as == "service" {
					n.start()
				}
				n.status("installed", "as "+as, "kernel probe: attached", "NRI: registered", "NRI on", "changed since")
				n.pod(rig.PodOptions{Namespace: "shop", Name: "web-0"})
				n.known("web-0")

				installed := n.files()
				if out := n.cniscope("install"); strings.Contains(out, "new ") || strings.Contains(out, "has to be restarted") {
					t.Errorf("a second time it says:\n%s", out)
				}
				harness.Equal(t, n.files(), installed, "a second time changed something")
				harness.Says(t, n.cniscope("uninstall --purge"), "containerd has to be restarted")
				harness.Equal(t, n.files(), before, "the removal left something")
				n.restart()
				n.pod(rig.PodOptions{Namespace: "shop", Name: "web-1"})
			})
		}
	}
}

type installation struct {
	*stage
	daemon *rig.Daemon
}

func setNode(t *testing.T, containerd string) *installation {
	t.Helper()
	n := &installation{stage: setJaeger(t)}
	n.startRig(rig.Options{
		NRIDisabled: true, Covers: slices.Concat(nodeFolders, nodeState), Containerd: scope.Containerd(t, containerd),
	})
	n.moveConfig(containerd != "containerd-1.7")
	n.restart()
	return n
}

// moveConfig puts containerd's configuration at its usual place, with or without imports.
func (n *installation) moveConfig(imports bool) {
	n.Helper()
	const usual = "/etc/containerd/config.toml"
	theirs, ours := filepath.Join(n.rig.Dir(), "config.toml"), filepath.Join(n.rig.Covered("/etc/containerd"), "config.toml")
	text := harness.Must(os.ReadFile(theirs))(n.T)
	var lines []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "imports = ") {
			lines = append(lines, line)
		} else if imports {
			lines = append(lines, "imports = ['/etc/containerd/conf.d/*.toml']\n")
		}
	}
	harness.Check(n.T, os.WriteFile(ours, []byte(strings.Join(lines, "")), 0o644))
	harness.Check(n.T, os.Remove(theirs))
	harness.Check(n.T, os.Symlink(usual, theirs))
}

func (n *installation) inside(command ...string) string {
	n.Helper()
	in, err := n.rig.Inside("")
	harness.Check(n.T, err)
	cmd := exec.CommandContext(n.ctx, in[0], append(in[1:], command...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		n.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return string(out)
}

func (n *installation) cniscope(line string) string {
	n.Helper()
	out := n.inside(append([]string{program}, strings.Fields(line)...)...)
	n.Logf("cniscope %s\n%s", line, out)
	return out
}

func (n *installation) files() string {
	n.Helper()
	where := strings.Join(nodeFolders, " ") + " " + filepath.Dir(n.rig.NRIPluginDir())
	return n.inside("sh", "-ec", "{ find "+where+" -not -type s -printf '%p %M %u %l\\n'; find "+where+" -type f -exec sha256sum {} +; } | sort")
}

func (n *installation) setEndpoint() {
	n.Helper()
	file := filepath.Join(n.rig.Covered("/etc/cniscope"), "cniscope.toml")
	text := harness.Must(os.ReadFile(file))(n.T)
	changed := strings.NewReplacer("\n#endpoint = \"\"\n", fmt.Sprintf("\nendpoint = %q\n", n.jaeger.OTLP()),
		"\n#settle = \"2s\"\n", "\nsettle = \"5s\"\n").Replace(string(text))
	harness.Check(n.T, os.WriteFile(file, []byte(changed), 0o600))
}

func (n *installation) restart() {
	n.Helper()
	n.rig.StopContainerd()
	harness.Check(n.T, n.rig.RestartContainerd(n.ctx))
}

func (n *installation) start() {
	n.Helper()
	var line []string
	for l := range strings.Lines(n.inside("cat", "/etc/systemd/system/multi-user.target.wants/cniscope.service")) {
		if exec, ok := strings.CutPrefix(l, "ExecStart="); ok {
			line = strings.Fields(exec)
		}
	}
	in, err := n.rig.Inside("")
	harness.Check(n.T, err)
	n.daemon, err = n.rig.Beside(n.ctx, "cniscope", nil, append(in, line...), func(context.Context) error { return n.observes() })
	harness.Check(n.T, err)
	n.Cleanup(n.daemon.Stop)
}

func (n *installation) observes() error {
	log, err := os.ReadFile(filepath.Join(n.rig.Dir(), "cniscope.log"))
	if err == nil && !strings.Contains(string(log), "observing CNI calls") {
		err = errors.New("it does not observe yet")
	}
	return err
}

func (n *installation) status(say ...string) {
	n.Helper()
	harness.Eventually(n, func() error {
		out := strings.Join(strings.Fields(n.inside("/usr/local/bin/cniscope", "status")), " ")
		for _, s := range say {
			if !strings.Contains(out, s) {
				return fmt.Errorf("the status lacks %q: %s", s, out)
			}
		}
		return nil
	})
}

func (n *installation) known(pod string) {
	n.Helper()
	n.spans("cniscope", func(all []*span) error {
		for _, x := range of(all, pod) {
			if x.attrs["cniscope.sandbox_running"].GetBoolValue() {
				return nil
			}
		}
		return fmt.Errorf("%s's setup has not arrived with what NRI knows", pod)
	})
}
