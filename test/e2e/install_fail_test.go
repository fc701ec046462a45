//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// Obstacles are reported, and nothing changes.
func TestAnInstallationThatFails(t *testing.T) {
	n := setNode(t, "containerd-2.3")
	config := filepath.Join(n.rig.Covered("/etc/containerd"), "config.toml")
	text, err := os.ReadFile(config)
	harness.Check(t, err)
	readOnly := func(dir string) string {
		return fmt.Sprintf("mount --bind %s %s; mount -o remount,bind,ro %s", dir, dir, dir)
	}
	for _, test := range []struct {
		name   string
		script string // the node's defect
		config string
		line   string
		say    []string
	}{
		{"a full disk", "mount -t tmpfs -o size=1m tmpfs /usr/local/bin", "", "install", []string{"/usr/local/bin/cniscope", "no space left on device", "nothing was changed"}},
		{"a full disk for containerd", "mount -t tmpfs -o size=4k,nr_inodes=2 tmpfs /var/lib/cniscope", "", "install", []string{"/var/lib/cniscope", "no space left on device", "nothing was changed"}},
		{"a read-only program folder", readOnly("/usr/local/bin"), "", "install", []string{"/usr/local/bin", "read-only file system", "nothing was changed"}},
		{"a read-only configuration", readOnly("/etc/containerd"), "", "install", []string{"/etc/containerd/conf.d/90-cniscope.toml", "read-only file system", "nothing was changed"}},
		// Under the path that the running containerd got.
		{"a broken configuration", "", string(text) + "\n[plugins.'io.containerd\n", "install", []string{"/config.toml:", "fix it first"}},
		{"no imports", "", strings.ReplaceAll(string(text), "imports", "# imports"), "install", []string{"does not import drop-ins", "--edit-config"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := &installation{stage: n.sub(t)}
			if test.config == "" {
				test.config = string(text)
			}
			harness.Check(t, os.WriteFile(config, []byte(test.config), 0o644))
			before := n.files()
			in, err := n.rig.Inside("mount --make-rprivate /\n" + test.script)
			harness.Check(t, err)
			out, err := exec.CommandContext(n.ctx, in[0], append(append(in[1:], program), strings.Fields(test.line)...)...).CombinedOutput()
			if err == nil {
				t.Fatalf("it was installed:\n%s", out)
			}
			for _, s := range test.say {
				if !strings.Contains(string(out), s) {
					t.Errorf("it does not say %q:\n%s", s, out)
				}
			}
			harness.Equal(t, n.files(), before, "something was changed")
		})
	}
}
