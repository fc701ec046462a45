package install

import (
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// containerd 1 needs the whole section, later versions missing keys only.
func TestWhatTheDropInSays(t *testing.T) {
	for _, test := range []struct {
		name, config string
		change       func(*Options)
		want         string
	}{{
		"1.7 with keys of the operator's", config17Imports, version("1.7.35"), `version = 2

[plugins."io.containerd.nri.v1.nri"]
disable = false
plugin_registration_timeout = '9s'
`,
	}, {
		"2.4", config4Off, version("2.4.2"), `version = 4

[plugins."io.containerd.nri.v1.nri"]
disable = false
`,
	}} {
		t.Run(test.name, func(t *testing.T) {
			n := newNode(t, map[string]string{"/etc/containerd/config.toml": test.config})
			n.install(test.change)
			text := n.text("/etc/containerd/conf.d/90-cniscope.toml")
			_, got, _ := strings.Cut(text, "version = ")
			if got = "version = " + strings.ReplaceAll(got, "'io.containerd", "\"io.containerd"); normal(got) != normal(test.want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
}

func normal(text string) string {
	return strings.Join(strings.Fields(strings.NewReplacer(`"`, "", `'`, "").Replace(text)), " ")
}

func TestWhereTheDropInGoes(t *testing.T) {
	for imports, want := range map[string]string{
		`["/etc/containerd/conf.d/*.toml"]`:                                "/etc/containerd/conf.d/90-cniscope.toml",
		`["/etc/containerd/mine/*.toml"]`:                                  "/etc/containerd/mine/90-cniscope.toml",
		`["/etc/containerd/mine/*.toml", "/etc/containerd/conf.d/*.toml"]`: "/etc/containerd/conf.d/90-cniscope.toml",
		`["conf.d/*.toml"]`:                                                "/etc/containerd/conf.d/90-cniscope.toml",
		`["/etc/containerd/conf.d/*"]`:                                     "/etc/containerd/conf.d/90-cniscope.toml",
	} {
		n := newNode(t, map[string]string{"/etc/containerd/config.toml": "version = 2\nimports = " + imports + "\n"})
		if got := steps(n.plan(version("1.7"))); !strings.Contains(got, "new "+want+"\n") {
			t.Errorf("%s:\n%s", imports, got)
		}
	}
}

func TestOtherDropIns(t *testing.T) {
	const off = "version = 2\n[plugins.\"io.containerd.nri.v1.nri\"]\ndisable = true\nplugin_path = \"/opt/other\"\n"
	n := newNode(t, map[string]string{
		"/etc/containerd/config.toml":         config17Imports,
		"/etc/containerd/conf.d/10-site.toml": off,
	})
	n.plan(version("1.7"))
	n.install(both(version("1.7"), plugin))
	if text := n.text("/etc/containerd/conf.d/90-cniscope.toml"); !strings.Contains(text, "/opt/other") || strings.Contains(text, "9s") {
		t.Errorf("containerd 1 knows only what 10-site.toml says:\n%s", text)
	}
	if n.text("/opt/other/90-cniscope") == "" {
		t.Error("it is not in the folder of plugins")
	}
	n.uninstall(false)
	n.write("/etc/containerd/conf.d/99-site.toml", off)
	n.refused(version("1.7"), "/etc/containerd/conf.d/99-site.toml is read after our drop-in", "switches NRI off again")
	n.refused(version("2.4"), "/etc/containerd/conf.d/99-site.toml is read after our drop-in", "switches NRI off again")
}

// And nothing changes.
func TestWhatIsInTheWay(t *testing.T) {
	const conf = "/etc/containerd/config.toml"
	for _, test := range []struct {
		name, config string
		change       func(*Options)
		say          []string
	}{
		{"broken", "version = 2\n[plugins\n", version("2.4"), []string{conf + ":2:9: ", "fix it first"}},
		{"broken twice", "version = 2\nversion = 3\n", version("2.4"), []string{conf, "version", "fix it first"}},
		{"an import that is gone", "version = 2\nimports = [\"/etc/containerd/gone.toml\"]\n", version("2.4"), []string{"/etc/containerd/gone.toml"}},
		{"no imports", "version = 2\n", version("1.7"), []string{conf + " does not import drop-ins", "--edit-config", `imports = ["/etc/containerd/conf.d/*.toml"]`}},
		{"version 1", "imports = [\"/etc/containerd/conf.d/*.toml\"]\n", version("1.7"), []string{conf + " has version 1", "migrate"}},
		{"NRI is not to be loaded", config4 + "disabled_plugins = 1\n", version("x"), []string{"no version of containerd", "2.4.2"}},
		{"disabled", "version = 2\ndisabled_plugins = [\"io.containerd.nri.v1.nri\"]\n", version("2.4"), []string{conf, "disabled_plugins", "--no-containerd"}},
		{"closed to services", "version = 2\n[plugins.\"io.containerd.nri.v1.nri\"]\ndisable_connections = true\n", version("2.4"), []string{conf, "disable_connections", "--as plugin"}},
		{"1.6 with a plugin", "version = 2\n", both(version("1.6"), plugin), []string{"1.7 or later", "--as service"}},
		{"no way", config4, func(o *Options) { o.As = "pod" }, []string{"--as pod", "service or plugin"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			newNode(t, map[string]string{conf: test.config}).refused(test.change, test.say...)
		})
	}
	t.Run("no containerd at all", func(t *testing.T) {
		n := newNode(t, nil)
		n.refused(nil, "cannot find containerd's version", "--containerd-version")
		s := harness.Must(Look(t.Context(), n.root, nil))(t) // status has no such flag
		if said := strings.Join(s.Unknown, "\n"); !strings.Contains(said, "cannot find containerd's version") || strings.Contains(said, "--containerd-version") {
			t.Errorf("status: %s", said)
		}
	})
	t.Run("a folder in place of a file", func(t *testing.T) {
		newNode(t, map[string]string{"/etc/cniscope/cniscope.toml/x": ""}).refused(version("2.4"), "cniscope.toml is not a file")
	})
	t.Run("a masked unit", func(t *testing.T) {
		n := newNode(t, nil)
		n.link("/dev/null", "/etc/systemd/system/cniscope.service")
		n.refused(version("2.4"), "masked", "systemctl unmask")
	})
}

func TestARemovalNeedsNoContainerd(t *testing.T) {
	n := newNode(t, map[string]string{"/etc/containerd/config.toml": config17})
	n.install(both(version("1.7"), edit))
	n.write("/etc/containerd/config.toml", "[plugins\n"+n.text("/etc/containerd/config.toml"))
	n.uninstall(false)
	harness.Equal(t, n.text("/etc/containerd/config.toml"), "[plugins\n"+config17, "what was added is still there")
}

func TestLinksStayInTheTree(t *testing.T) {
	n := newNode(t, map[string]string{"/data/containerd/config.toml": config17Imports})
	n.link("/data/containerd", "/etc/containerd")
	before := n.tree()
	n.install(version("1.7"))
	if n.text("/data/containerd/conf.d/90-cniscope.toml") == "" {
		t.Error("the link was not followed")
	}
	n.uninstall(false)
	n.same(before)
}
