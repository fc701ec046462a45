package install

import (
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func TestReleaseNames(t *testing.T) {
	for text, want := range map[string]string{
		"NAME=x\nID=talos\n":                      "talos",
		"ID=\"talos\"\n":                          "talos",
		"ID='cos' # GKE\n":                        "cos",
		"ID=flatcar\nID_LIKE=coreos\n":            "flatcar coreos",
		"ID=mine\nID_LIKE=\"flatcar  coreos\"\n":  "mine flatcar coreos",
		"# ID=talos\nID=debian\r\n":               "debian",
		"VERSION_ID=1\nVARIANT_ID=cos\nID=ubuntu": "ubuntu",
		"ID=Talos\n":                              "talos",
		"ID=one\nID=two\n":                        "two", // as in the shell
		"ID=\"\n":                                 "",
		"ID\n":                                    "",
		"":                                        "",
	} {
		n := newNode(t, map[string]string{"/usr/lib/os-release": text})
		n.link("../usr/lib/os-release", "/etc/os-release")
		harness.Equal(t, strings.TrimSpace(strings.Join(newTree(n.root, nil).release(), " ")), want, text)
	}
}

func TestReleaseThatCannotBeRead(t *testing.T) {
	n := newNode(t, map[string]string{"/etc/os-release/x": "", "/usr/lib/os-release": "ID=cos\n"})
	if !newTree(n.root, nil).is("cos") {
		t.Error("a folder in the file's place hides the other file")
	}
	if newTree(newNode(t, nil).root, nil).is("") {
		t.Error("without a file it has a name")
	}
}

func TestSealedPlatforms(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"Talos":                  {"/etc/cri/containerd.toml": ""},
		"Bottlerocket":           {"/etc/os-release": "ID=bottlerocket\n"},
		"Container-Optimized OS": {"/etc/os-release": "ID=cos\n"},
	} {
		for as, change := range map[string]func(*Options){"": nil, ", containerd left alone": noContainerd, ", as a plugin": plugin} {
			t.Run(name+as, func(t *testing.T) {
				newNode(t, files).refused(change, "nothing can be installed on a node of "+name, "run cniscope as a DaemonSet", "docs/platforms.md")
			})
		}
	}
}

// Flatcar's /usr is read-only.
func TestFlatcar(t *testing.T) {
	n := newNode(t, map[string]string{"/etc/os-release": "ID=flatcar\nID_LIKE=coreos\n", "/etc/containerd/config.toml": config4})
	before := n.tree()
	harness.Equal(t, steps(n.install(nil)), strings.Replace(asService, "/usr/local/bin", "/opt/bin", 1))
	if unit := n.text(unitFile); !strings.Contains(unit, "ExecStart=/opt/bin/cniscope run") || strings.Contains(unit, "/usr/local") {
		t.Errorf("the unit starts another program:\n%s", unit)
	}
	n.build("2")
	harness.Equal(t, steps(n.install(nil)), "changed /opt/bin/cniscope", "an upgrade does")
	n.uninstall(false)
	n.same(before)
}
