package install

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

const (
	// `containerd config default` of 1.7.
	config17 = `disabled_plugins = []
imports = []
version = 2

[grpc]
  address = "/run/containerd/containerd.sock"

[plugins]

  [plugins."io.containerd.nri.v1.nri"]
    disable = true
    disable_connections = false
    plugin_path = "/opt/nri/plugins"
    plugin_registration_timeout = "9s"
    socket_path = "/var/run/nri/nri.sock"
`
	config17Imports = "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\"]\n[plugins.\"io.containerd.nri.v1.nri\"]\n  disable = true\n  plugin_registration_timeout = \"9s\"\n"
	// Of 2.3 and 2.4.
	config4    = "version = 4\nimports = ['/etc/containerd/conf.d/*.toml']\n\n[plugins.'io.containerd.nri.v1.nri']\ndisable = false\n"
	config4Off = "version = 4\nimports = ['/etc/containerd/conf.d/*.toml']\n\n[plugins.'io.containerd.nri.v1.nri']\ndisable = true\nplugin_registration_timeout = '9s'\n"
	config3Off = "version = 3\nimports = ['/etc/containerd/conf.d/*.toml']\n\n[plugins.'io.containerd.nri.v1.nri']\ndisable = true\n"
)

const asService = `new /usr/local/bin/cniscope
new /etc/cniscope/cniscope.toml
new /etc/systemd/system/cniscope.service
new /etc/systemd/system/multi-user.target.wants/cniscope.service`

const asPlugin = `new /usr/local/bin/cniscope
new /etc/cniscope/cniscope.toml
new /opt/nri/plugins/90-cniscope`

func plugin(o *Options) { o.As = Plugin }

func version(v string) func(*Options) { return func(o *Options) { o.ContainerdVersion = v } }

func both(f ...func(*Options)) func(*Options) {
	return func(o *Options) {
		for _, f := range f {
			f(o)
		}
	}
}

func edit(o *Options)         { o.EditConfig = true }
func noContainerd(o *Options) { o.NoContainerd = true }

// The second installation changes nothing; the removal restores every byte.
func TestInstalledTwiceAndTakenAway(t *testing.T) {
	const dropIn = "new /etc/containerd/conf.d/90-cniscope.toml"
	const conf = "/etc/containerd/config.toml"
	for _, test := range []struct {
		name   string
		files  map[string]string
		change func(*Options)
		steps  string
	}{
		{"2.4, NRI is on", map[string]string{conf: config4}, version("2.4.2"), asService},
		{"2.4, NRI is on, plugin", map[string]string{conf: config4}, both(version("2.4.2"), plugin), asPlugin},
		{"2.4 without a configuration", nil, version("2.4.2"), asService},
		{"2.4, NRI is off", map[string]string{conf: config4Off}, version("2.4.2"), dropIn + "\n" + asService},
		{"2.0, NRI is off", map[string]string{conf: config3Off}, version("2.0.5"), dropIn + "\n" + asService},
		{"version 3, which tells enough", map[string]string{conf: config3Off}, nil, dropIn + "\n" + asService},
		{"1.7 with imports", map[string]string{conf: config17Imports}, version("1.7.35"), dropIn + "\n" + asService},
		{"1.7 with imports, plugin", map[string]string{conf: config17Imports}, both(version("1.7.35"), plugin), dropIn + "\n" + asPlugin},
		{"1.7, its default", map[string]string{conf: config17}, both(version("1.7.35"), edit), "changed " + conf + "\n" + dropIn + "\n" + asService},
		{"1.7 without a configuration", nil, version("1.7"), "new " + conf + "\n" + dropIn + "\n" + asService},
		{"1.6 has no NRI", map[string]string{conf: "version = 2\n"}, version("1.6.30"), asService},
		{"left alone", map[string]string{conf: config17}, both(version("1.7.35"), noContainerd), asService},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := newNode(t, test.files)
			before := n.tree()
			p := n.plan(test.change)
			harness.Equal(t, steps(p), test.steps)
			n.same(before) // a plan changes nothing
			n.apply(p)
			installed := n.tree()
			if again := n.install(test.change); again.Changes() {
				t.Errorf("a second time:\n%s", again.Diff())
			}
			n.same(installed)
			n.uninstall(false)
			n.same(before)
		})
	}
}

func TestAnUpgradeKeepsWhatWasChanged(t *testing.T) {
	n := newNode(t, map[string]string{"/etc/containerd/config.toml": config4Off})
	before := n.tree()
	n.install(version("2.4.2"))
	const options, unit = "/etc/cniscope/cniscope.toml", "/etc/systemd/system/cniscope.service"
	n.write(options, "[export.otlp]\nendpoint = \"http://127.0.0.1:4317\"\n")
	n.write(unit, n.text(unit)+"# mine\n")
	n.build("2")
	p := n.install(version("2.4.2"))
	harness.Equal(t, steps(p), "changed /usr/local/bin/cniscope\nkept /etc/cniscope/cniscope.toml\nkept /etc/systemd/system/cniscope.service")
	if !strings.HasSuffix(n.text("/usr/local/bin/cniscope"), "2") || !strings.HasSuffix(n.text(unit), "# mine\n") {
		t.Error("the wrong files were replaced")
	}
	removal := n.uninstall(false)
	if got, want := steps(removal), "kept /etc/systemd/system/cniscope.service"; !strings.Contains(got, want) {
		t.Errorf("the removal does:\n%s\nwant: %s", got, want)
	}
	for _, s := range removal.Steps { // another uninstall, with --purge, finds nothing
		if left := filepath.Join(n.root, s.Path); s.Does == Keeps && !strings.HasSuffix(s.Why, "; rm "+left+" removes it") {
			t.Errorf("%s: %s", s.Path, s.Why)
		}
	}
	if n.text(options) != "[export.otlp]\nendpoint = \"http://127.0.0.1:4317\"\n" {
		t.Error("the options were not kept")
	}
	n.install(version("2.4.2"))
	n.write("/etc/containerd/conf.d/90-cniscope.toml", "version = 4\n")
	if notes := strings.Join(n.install(version("2.4.2")).Notes, "\n"); !strings.Contains(notes, "NRI stays off, since /etc/containerd/config.toml says so") {
		t.Errorf("that NRI is off now is not said:\n%s", notes)
	}
	n.uninstall(true)
	if strings.Contains(n.tree(), "conf.d/90-cniscope") {
		t.Error("purge keeps what was changed")
	}
	for _, path := range []string{options, unit} {
		n.remove(path)
	}
	n.same(before)
}

func TestFilesOfOthers(t *testing.T) {
	n := newNode(t, map[string]string{
		"/etc/containerd/config.toml":          config4,
		"/etc/cniscope/cniscope.toml":          "[slow]\ncall = \"1s\"\n",
		"/etc/systemd/system/cniscope.service": "[Service]\nExecStart=/bin/true\n",
	})
	before := n.tree()
	p := n.install(version("2.4"))
	harness.Equal(t, steps(p), "new /usr/local/bin/cniscope\nkept /etc/cniscope/cniscope.toml\nkept /etc/systemd/system/cniscope.service\nnew /etc/systemd/system/multi-user.target.wants/cniscope.service")
	if p := n.install(version("2.4")); p.Changes() {
		t.Errorf("a second time:\n%s", p.Diff())
	}
	n.build("2")
	n.install(version("2.4"))
	n.uninstall(false)
	n.same(before)
}

// An identical file is not removed.
func TestWhatIsThereAlready(t *testing.T) {
	n := newNode(t, map[string]string{"/etc/containerd/config.toml": config4})
	n.write("/usr/local/bin/cniscope", "\x7fELF\x001")
	before := n.tree()
	n.install(version("2.4"))
	n.uninstall(false)
	n.same(before)
}

// The service is removed.
func TestFromServiceToPlugin(t *testing.T) {
	n := newNode(t, map[string]string{"/etc/containerd/config.toml": config17Imports})
	before := n.tree()
	n.install(version("1.7.35"))
	p := n.install(both(version("1.7.35"), plugin))
	want := `removed /etc/systemd/system/multi-user.target.wants/cniscope.service
removed /etc/systemd/system/cniscope.service
new /opt/nri/plugins/90-cniscope`
	harness.Equal(t, steps(p), want)
	n.uninstall(false)
	n.same(before)
}

// 0.2.0 made containerd trace; that is reported once.
func TestAnUpgradeNoLongerHasContainerdTrace(t *testing.T) {
	const unit = "/etc/systemd/system/containerd.service.d/90-cniscope.conf"
	n := newNode(t, nil)
	before := n.tree()
	n.install(version("2.4"))
	n.write(unit, "[Service]\n")
	entry := fmt.Sprintf(`"files": [{"path": %q, "digest": %q},`, unit, (&content{data: []byte("[Service]\n")}).digest())
	old := strings.Replace(n.text(manifestFile), `"files": [`, entry, 1)
	old = strings.Replace(old, `"as": "service"`, `"as": "service", "containerd_tracing": "http://127.0.0.1:4317"`, 1)
	n.write(manifestFile, strings.Replace(old, `"/etc/systemd/system"`, `"/etc/systemd/system", "/etc/systemd/system/containerd.service.d"`, 1))
	p := n.install(version("2.4"))
	harness.Equal(t, steps(p), "removed "+unit)
	harness.Says(t, strings.Join(p.Notes, "\n"), "docs/traces.md")
	if notes := strings.Join(n.install(version("2.4")).Notes, "\n"); strings.Contains(notes, "docs/traces.md") {
		t.Errorf("a second time it says:\n%s", notes)
	}
	n.uninstall(false)
	if _, err := n.stat(unit); err == nil {
		t.Error("it is still there")
	}
	n.same(before)
}

func TestAFolderInUseStays(t *testing.T) {
	n := newNode(t, nil)
	n.install(version("2.4"))
	n.write("/var/lib/cniscope/spool/0001.seg", "an operation")
	n.write("/etc/cniscope/ca.pem", "mine")
	notes := strings.Join(n.uninstall(false).Notes, "\n")
	for _, dir := range []string{"/var/lib/cniscope", "/etc/cniscope"} {
		harness.Says(t, notes, dir+" holds files")
	}
	if n.text("/etc/cniscope/ca.pem") != "mine" || n.text("/var/lib/cniscope/spool/0001.seg") != "an operation" {
		t.Error("they are gone")
	}
}

// Not even if it is empty.
func TestAFolderThatWasThereStays(t *testing.T) {
	n := newNode(t, nil)
	harness.Check(t, os.MkdirAll(n.root+stateFolder, 0o755))
	before := n.tree()
	n.install(version("2.4"))
	if notes := n.uninstall(false).Notes; len(notes) > 0 {
		t.Error(notes)
	}
	n.same(before)
}

func TestADisabledServiceStaysDisabled(t *testing.T) {
	n := newNode(t, nil)
	before := n.tree()
	n.install(version("2.4"))
	n.remove(enabledLink)
	for range 2 {
		harness.Equal(t, steps(n.install(version("2.4"))), "kept "+enabledLink)
	}
	n.uninstall(false)
	n.same(before)
}

func TestTheOptionsFitTheNode(t *testing.T) {
	n := newNode(t, map[string]string{"/etc/containerd/config.toml": `version = 4
[plugins.'io.containerd.server.v1.grpc']
  address = "/run/other/containerd.sock"
[plugins.'io.containerd.cri.v1.runtime'.cni]
  conf_dir = "/etc/other/net.d"
[plugins.'io.containerd.nri.v1.nri']
  socket_path = "/run/other/nri.sock"
`})
	n.install(version("2.4"))
	text := n.text("/etc/cniscope/cniscope.toml")
	for _, line := range []string{`socket = "/run/other/nri.sock"`, `socket = "/run/other/containerd.sock"`, `conf_dir = "/etc/other/net.d"`} {
		harness.Says(t, text, "\n"+line+"\n")
	}
	if info, _ := n.stat("/etc/cniscope/cniscope.toml"); fmt.Sprint(info.Mode()) != "-rw-------" {
		t.Errorf("the options' mode is %s: headers may hold secrets", info.Mode())
	}
}

// Files that cniscope up to 0.2.0 replaced are named.
func TestAProgramOfOthers(t *testing.T) {
	for path, as := range map[string]func(*Options){"/usr/local/bin/cniscope": nil, "/opt/nri/plugins/90-cniscope": plugin} {
		n := newNode(t, map[string]string{path: "old", "/etc/containerd/config.toml": config4})
		n.refused(as, path+" is there and was not installed by cniscope install; remove it")
	}
	n := newNode(t, nil)
	n.install(version("2.4"))
	n.write(manifestFile, strings.Replace(n.text(manifestFile), `"digest"`, `"before": "d1gest", "digest"`, 1))
	n.build("2")
	n.install(version("2.4"))
	notes := strings.Join(n.uninstall(false).Notes, "\n")
	if want := "replaced /usr/local/bin/cniscope; what was there before is /var/lib/cniscope/before/d1gest"; !strings.Contains(notes, want) {
		t.Errorf("it says:\n%s", notes)
	}
}
