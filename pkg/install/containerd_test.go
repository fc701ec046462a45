package install

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

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

const dropInFile = "/etc/containerd/conf.d/90-cniscope.toml"

func TestAnImportIsAddedAndTakenOut(t *testing.T) {
	const ours = `"/etc/containerd/conf.d/*.toml"`
	const added = "# The next line was added by cniscope install; cniscope uninstall takes it out.\nimports = [" + ours + "]\n"
	for _, test := range []struct{ name, before, after string }{
		{"no imports", "version = 2\n\n[grpc]\n", added + "version = 2\n\n[grpc]\n"},
		{"an empty file", "", added},
		{"an empty list", "version = 2\nimports = []\n", "version = 2\nimports = [" + ours + "]\n"},
		{"others", "imports = [\"/a/x.toml\", '/b.toml'] # mine\n", "imports = [" + ours + ", \"/a/x.toml\", '/b.toml'] # mine\n"},
		{"over lines", "imports = [\n  # first\n  \"/a.toml\",\n]\nversion = 2", "imports = [" + ours + ", \n  # first\n  \"/a.toml\",\n]\nversion = 2"},
		{"only in a comment", "# imports = [" + ours + ", \"/a.toml\"]\nimports = [\"/a.toml\"]\n", "# imports = [" + ours + ", \"/a.toml\"]\nimports = [" + ours + ", \"/a.toml\"]\n"},
		{"only in a table", "[other]\nimports = []\n", added + "[other]\nimports = []\n"},
		{"windows' lines", "version = 2\r\nimports = []\r\n", "version = 2\r\nimports = [" + ours + "]\r\n"},
		{"a quoted key", "\"imports\" = []\n", "\"imports\" = [" + ours + "]\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			after, in := insertImport([]byte(test.before), dropInFile)
			harness.Equal(t, string(after), test.after, after)
			if back, ok := in.remove(after); !ok || string(back) != test.before {
				t.Errorf("taken out:\n%s", back)
			}
			// Also after the file changed.
			if back, ok := in.remove([]byte("# more\n" + test.after + "# and more\n")); !ok || string(back) != "# more\n"+test.before+"# and more\n" {
				t.Errorf("taken out of a changed file:\n%s", back)
			}
			if _, ok := in.remove([]byte("version = 2\n")); ok {
				t.Error("it was taken out of where it is not")
			}
		})
	}
}

func FuzzImports(f *testing.F) {
	f.Add([]byte(config17))
	f.Add([]byte(config4))
	f.Add([]byte("imports = [\n]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		before, err := parse(defaultConfig, text)
		if err != nil {
			return
		}
		if _, other := before.values["imports"]; other && before.values["imports"] != nil {
			if _, list := before.values["imports"].([]any); !list {
				return
			}
		}
		text = bytes.Clone(text)
		after, in := insertImport(text, dropInFile)
		if back, ok := in.remove(after); !ok || !bytes.Equal(back, text) {
			t.Fatalf("taken out: %q, was: %q", back, text)
		}
		var values map[string]any
		if err := toml.Unmarshal(after, &values); err != nil {
			t.Fatalf("%v: %q", err, after)
		}
		c := &configuration{}
		now, _ := parse(defaultConfig, after)
		c.files = []configFile{now}
		if path, imported := c.dropIn(); !imported && !strings.Contains(string(text), "imports") {
			t.Fatalf("%s is not imported: %q", path, after)
		}
	})
}

func TestVersionsThatAreTold(t *testing.T) {
	for text, want := range map[string]string{
		"2.4.2": "2 true", "v2.3.7": "2 true", "1.7.35+unknown": "1 true", "1.6.30~ds1": "1 false",
		"2": "2 true", "3.0.0-rc.1": "3 true",
	} {
		v, err := parseVersion(text, "test")
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		harness.Equal(t, fmt.Sprint(v.Major, v.hasNRI()), want, text)
	}
	for _, text := range []string{"", "x", "2 4", "latest", "2.x", "99999999999999999999"} {
		if v, err := parseVersion(text, "test"); err == nil {
			t.Errorf("%q is %v", text, v)
		}
	}
}

func TestAVersionThatWasToldBefore(t *testing.T) {
	n := newNode(t, nil)
	n.install(version("2.3"))
	for range 2 {
		if p := n.install(nil); p.Changes() || p.wish.version.Text != "2.3" {
			t.Errorf("%s: %s", p.wish.version.Text, steps(p))
		}
	}
}

// Before: status said that containerd did not answer at the default socket, whatever [runtime] socket was.
func TestTheVersionIsAskedAtTheConfiguredSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "containerd.sock")
	_, err := newTree("/", nil).version(t.Context(), Options{Choice: Choice{ContainerdConfig: "/not/there.toml"}}, &manifest{}, &configuration{socket: socket})
	if err == nil || !strings.Contains(err.Error(), ": stat "+socket+": no such file") || !strings.Contains(err.Error(), "/not/there.toml does not exist") {
		t.Error(err)
	}
}
