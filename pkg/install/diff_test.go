package install

import (
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// Programs appear by digest; removed options, which may hold secrets, not at all.
func TestTheDiff(t *testing.T) {
	n := newNode(t, map[string]string{"/etc/containerd/config.toml": config17})
	diff := n.plan(both(version("1.7"), edit)).Diff()
	harness.Says(t, diff,
		"--- a/etc/containerd/config.toml\n+++ b/etc/containerd/config.toml\n@@ -1,5 +1,5 @@\n disabled_plugins = []\n-imports = []\n+imports = [\"/etc/containerd/conf.d/*.toml\"]\n version = 2\n",
		"--- /dev/null\n+++ b/etc/containerd/conf.d/90-cniscope.toml\n",
		"+disable = false\n",
		"--- /dev/null\n+++ b/usr/local/bin/cniscope\n+ 6 bytes, sha256 ",
		"+++ b/etc/systemd/system/multi-user.target.wants/cniscope.service\n@@ -0,0 +1 @@\n+link to /etc/systemd/system/cniscope.service\n",
	)
	n.install(both(version("1.7"), edit))
	n.write("/etc/cniscope/cniscope.toml", "[export.otlp]\nheaders = { authorization = \"Bearer canary\" }\n")
	p := harness.Must(NewRemoval(Options{Root: n.root}, true))(t)
	if diff := p.Diff(); strings.Contains(diff, "canary") || !strings.Contains(diff, "--- a/etc/cniscope/cniscope.toml\n+++ /dev/null\n- ") {
		t.Errorf("the diff of the removal:\n%s", diff)
	}
}
