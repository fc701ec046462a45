package config

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

func TestARelayToItselfIsFoundInAnySpelling(t *testing.T) {
	for listen, upstreams := range map[string]map[string]bool{
		"127.0.0.1:4319": {
			"http://127.0.0.1:4319": true, "http://localhost:4319": true, "http://LocalHost.:4319": true, "http://x.localhost:4319": true,
			"http://0.0.0.0:4319": true, "http://[::]:4319": true, "http://[::ffff:127.0.0.1]:4319": true,
			"http://127.0.0.1:04319": true, "https://127.0.0.1:4319/": true, "127.0.0.1:4319": true,
			"http://127.0.0.1:4317": false, "http://127.0.0.2:4319": false, "http://[::1]:4319": false, "http://192.0.2.1:4319": false,
		},
		"[::1]:4319":              {"http://[::1]:4319": true, "http://[0:0::1]:4319": true, "http://localhost:4319": true, "http://127.0.0.1:4319": false},
		"[::ffff:127.0.0.1]:4319": {"http://127.0.0.1:4319": true},
	} {
		for upstream, loop := range upstreams {
			for _, text := range []string{
				"[relay]\nlisten = \"" + listen + "\"\nupstream = \"" + upstream + "\"\n",
				"[relay]\nlisten = \"" + listen + "\"\n[export.otlp]\nendpoint = \"" + upstream + "\"\n",
			} {
				_, err := Parse("f.toml", []byte(text))
				if found := err != nil && strings.Contains(err.Error(), "would send to itself"); found != loop {
					t.Errorf("%s to %s: %v", listen, upstream, err)
				}
			}
		}
	}
}

func TestATokenInPlainTextToAnotherMachineIsAWarning(t *testing.T) {
	const headers = "headers = { authorization = \"Bearer hunter2\" }\n"
	for _, test := range []struct{ name, text, want string }{
		{"another machine", "[export.otlp]\nendpoint = \"http://192.0.2.1:4317\"\n" + headers, `:3:1: export.otlp.headers: "authorization" is sent to "http://192.0.2.1:4317" in plain text`},
		{"one that cannot be found", "[export.otlp]\nendpoint = \"http://collector.invalid:4317\"\n" + headers, ":3:1: export.otlp.headers: "},
		{"without a scheme", "[export.otlp]\nendpoint = \"192.0.2.1:4317\"\ninsecure = true\n" + headers, ":4:1: export.otlp.headers: "},
		{"another machine by the relay", "[export.otlp]\n" + headers + "[relay]\nlisten = \"127.0.0.1:4319\"\nupstream = \"http://192.0.2.1:4317\"\n", ":5:1: relay.upstream: \"authorization\" is sent to"},
		{"TLS", "[export.otlp]\nendpoint = \"https://192.0.2.1:4317\"\n" + headers, ""},
		{"this machine", "[export.otlp]\nendpoint = \"http://127.0.0.1:4317\"\n" + headers, ""},
		{"this machine by name", "[export.otlp]\nendpoint = \"http://localhost:4317\"\n" + headers, ""},
		{"no headers", "[export.otlp]\nendpoint = \"http://192.0.2.1:4317\"\n", ""},
		{"a relay that is off", "[export.otlp]\n" + headers + "[relay]\nupstream = \"http://192.0.2.1:4317\"\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			warned(t, test.text, test.want)
		})
	}
}

func TestAnAttributeOfThePodIsAWarning(t *testing.T) {
	warned(t, "[resource]\nattributes = { \"k8s.pod.name\" = \"x\" }\n", `:2:1: resource.attributes: "k8s.pod.name" has no effect`)
	warned(t, "[resource]\nattributes = { \"k8s.cluster.uid\" = \"x\" }\n", "")
}

// warned expects a warning with a text and without a secret; none where want is empty. DNS is not asked.
func warned(t *testing.T, text, want string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "f.toml")
	harness.Check(t, os.WriteFile(file, []byte(text), 0o600))
	source := Source{Base: Default(), Path: file}
	o := harness.Must(source.Load())(t)
	unasked, cancel := context.WithCancel(t.Context())
	cancel()
	said := ""
	for _, w := range source.Warnings(unasked, o) {
		said += w.Error() + "\n"
	}
	if (want == "") != (said == "") || !strings.Contains(said, want) || strings.Contains(said, "hunter2") {
		t.Errorf("%s\n     %s\nwant %s", text, said, want)
	}
}

func TestMetricsThatContradictThemselves(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		harness.Check(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	good, bad := file("good.yml", ""), file("bad.yml", "tls_server_config:\n  cert: 1\n  kee: 2\n")
	for text, want := range map[string]string{
		"[metrics]\nweb_config = \"" + good + "\"\n":                                                "2:1: metrics.web_config: does nothing without listen",
		"[metrics]\nhealth_listen = \":9472\"\n":                                                    "2:1: metrics.health_listen: does nothing without listen",
		"[metrics]\nlisten = \":9471\"\nweb_config = \"web.yml\"\n":                                 "3:1: metrics.web_config: \"web.yml\" is not an absolute path",
		"[metrics]\nlisten = \":9471\"\nweb_config = \"" + bad + "\"\n":                             "line 3: field kee not found",
		"[metrics]\nlisten = \":9471\"\nweb_config = \"" + filepath.Join(dir, "none") + "\"\n":      "there is no file",
		"[metrics]\nlisten = \"127.0.0.1:9471\"\nhealth_listen = \"127.0.0.1:9471\"\n":              "is the address of listen",
		"[metrics]\nlisten = \"unix:///run/x.sock\"\n":                                              "is not a host and a port",
		"[metrics]\nlisten = \"http://127.0.0.1:9471\"\n":                                           "is not a host and a port",
		"[metrics]\nlisten = \"::1:9471\"\n":                                                        "is not a host and a port",
		"[metrics]\nlisten = \":9471\"\nweb_config = \"" + good + "\"\nhealth_listen = \":9472\"\n": "",
		"[metrics]\nlisten = \"[::1]:9471\"\n":                                                      "",
	} {
		refused(t, Default(), text, want)
	}
}

// And only that.
func TestMetricsThatOthersCanRead(t *testing.T) {
	dir := t.TempDir()
	users := filepath.Join(dir, "users.yml")
	harness.Check(t, os.WriteFile(users, []byte("basic_auth_users:\n  a: $2y$04$fJOSE9fVqvtyJG6GqJnbc.SIj.zImz5XjIUWxzQxaNnmYwD2UfQEu\n"), 0o600))
	empty := filepath.Join(dir, "empty.yml")
	harness.Check(t, os.WriteFile(empty, nil, 0o600))
	for _, test := range []struct {
		listen, web, health string
		want                string
	}{
		{":9471", "", "", "2:1: metrics.listen: any client that reaches"},
		{"0.0.0.0:9471", "", "", "any client that reaches"},
		{"[::]:9471", "", "", "any client that reaches"},
		{"10.1.2.3:9471", empty, "", "any client that reaches"},
		{"node.example:9471", "", "", "any client that reaches"},
		{"127.0.0.1:9471", "", "", ""},
		{"127.9.9.9:9471", "", ":9472", ""},
		{"[::1]:9471", "", "", ""},
		{"[::ffff:127.0.0.1]:9471", "", "", ""},
		{"localhost:9471", "", "", ""},
		{":9471", users, "", "passwords are sent to"},
		{"127.0.0.1:9471", users, "127.0.0.1:9472", ""},
		{"127.0.0.1:9471", users, ":9472", "health"},
		{"", "", "", ""},
	} {
		o := Default()
		o.Metrics = Metrics{Listen: test.listen, WebConfig: test.web, HealthListen: test.health}
		path := filepath.Join(dir, "cniscope.toml")
		harness.Check(t, os.WriteFile(path, []byte("[metrics]\nlisten = \"\"\n"), 0o600))
		said := ""
		for _, p := range (Source{Path: path}).Warnings(t.Context(), o) {
			said += p.Error()
		}
		if (test.want == "") != (said == "") || !strings.Contains(said, test.want) {
			t.Errorf("%+v: %q", test, said)
		}
	}
}

// On any system.
func TestPathsAreThoseOfTheSystem(t *testing.T) {
	for _, test := range []struct {
		on         System
		text, want string // the mistake
	}{
		{Windows, `state.dir = 'D:\cniscope\run'`, ""},
		{Windows, `state.dir = "D:/cniscope/run"`, ""},
		{Windows, `export.file.path = '\\server\share\spans.json'`, ""},
		{Windows, `export.spool.dir = "/var/lib/cniscope"`, "is a path of Linux"},
		{Windows, `state.dir = 'cniscope\run'`, "is not an absolute path"},
		{Windows, `state.dir = 'C:run'`, "is not an absolute path"},
		{Windows, `state.dir = '\\?\C:\run'`, "is the name of a device"},
		{Windows, `state.dir = 'C:\run?'`, "which no file name of Windows has"},
		{Windows, `runtime.socket = '\\.\pipe\k3s'`, ""},
		{Windows, `runtime.socket = "npipe:////./pipe/k3s"`, `write '\\.\pipe\k3s'`},
		{Windows, `runtime.socket = 'C:\containerd.sock'`, "is not the name of a pipe"},
		{Windows, `runtime.socket = "/run/containerd/containerd.sock"`, "is not the name of a pipe"},
		{Windows, `probe.callers = ["C:/k/bin/containerd.exe"]`, ""},
		{Windows, `probe.callers = ["/usr/bin/cri-dockerd"]`, `as "C:/k/bin/containerd.exe"`},
		{Windows, `probe.source = "etw"`, ""},
		{Windows, `probe.source = "bpf"`, `"auto", "etw", "snapshots"`},
		{Windows, `nri.enabled = true`, "is for Linux"},
		{Windows, `nri.enabled = false`, ""},
		{Windows, `control.read_group = "cniscope"`, "is for Linux"},
		{Windows, "metrics.listen = \"127.0.0.1:9471\"\nmetrics.web_config = 'C:\\web.yml'", ""}, // absent here
		{Linux, `state.dir = "/run/x"`, ""},
		{Linux, `state.dir = 'C:\run'`, "is a path of Windows"},
		{Linux, `runtime.socket = '\\.\pipe\x'`, "is a path of Windows"},
		{Linux, `probe.source = "etw"`, `"auto", "bpf", "connector"`},
		{Linux, `control.read_group = "cniscope"`, ""},
	} {
		refused(t, DefaultFor(test.on), test.text, test.want)
	}
}

func TestDefaultsAreRightOnTheirSystem(t *testing.T) {
	for _, on := range []System{Linux, Windows} {
		o, err := over(DefaultFor(on), DefaultFor(on).TOML())
		if err != nil {
			t.Errorf("%s: %v", on, err)
		}
		if changes := o.Changes(DefaultFor(on)); len(changes) != 0 {
			t.Errorf("%s: %v", on, changes)
		}
	}
}

func TestTarget(t *testing.T) {
	tests := []struct {
		endpoint string
		insecure bool
		want     string
		plain    bool
	}{
		{"", false, "", false},
		{"http://127.0.0.1:4317", false, "127.0.0.1:4317", true},
		{"http://[::1]:4317/", false, "[::1]:4317", true},
		{"https://[::1]:4318/v1/traces", true, "[::1]:4318", false},
		{"https://a.example:443", false, "a.example:443", false},
		{"https://a.example:443", true, "a.example:443", false}, // the scheme has precedence
		{"https://a.example", false, "a.example:443", false},
		{"http://[::1]/v1/traces", false, "[::1]:80", true},
		{"a.example:4317", false, "a.example:4317", false},
		{"a.example:4317", true, "a.example:4317", true},
	}
	for _, tt := range tests {
		o, err := Parse("f.toml", []byte("export.otlp.endpoint = "+quote(tt.endpoint)))
		if path := o.Export.OTLP.Path(); err != nil || (path != "") != strings.HasSuffix(tt.endpoint, "/v1/traces") {
			t.Errorf("%s: path %s, %v", tt.endpoint, path, err)
		}
		got, plain := OTLP{Endpoint: tt.endpoint, Insecure: tt.insecure}.Target()
		if got != tt.want || plain != tt.plain {
			t.Errorf("%s: %s, plain %t", tt.endpoint, got, plain)
		}
	}
}

func TestTheCertificateIsReadAnewForEveryConnection(t *testing.T) {
	dir := t.TempDir()
	authority := harness.Must(harness.NewAuthority())(t)
	o := OTLP{
		Endpoint: "https://a:1", CA: filepath.Join(dir, "ca.pem"),
		Cert: filepath.Join(dir, "cniscope.crt"), Key: filepath.Join(dir, "cniscope.key"),
	}
	harness.Check(t, os.WriteFile(o.CA, authority.PEM(), 0o600))
	var c *tls.Config
	for _, name := range []string{"first", "renewed"} {
		pair, err := authority.Issue(name, time.Hour)
		harness.Check(t, errors.Join(err, harness.WritePEM(dir, "cniscope", pair)))
		if c == nil {
			c = harness.Must(o.TLS())(t)
		}
		got := harness.Must(c.GetClientCertificate(&tls.CertificateRequestInfo{}))(t)
		if !got.Leaf.Equal(pair.Leaf) {
			t.Errorf("the certificate of %s is used, not that of %s", got.Leaf.Subject, name)
		}
	}
	if !c.RootCAs.Equal(authority.Pool()) {
		t.Error("other authorities are believed than the one that is named")
	}
}

func TestPlainTextHasNoTLS(t *testing.T) {
	c, err := OTLP{Endpoint: "http://a:1", CA: "/not/there"}.TLS()
	if c != nil || err != nil {
		t.Errorf("%v, %v", c, err)
	}
}

func TestFilesThatAreNotCertificatesAreNamed(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.pem")
	harness.Check(t, os.WriteFile(bad, []byte("hunter2"), 0o600))
	for text, want := range map[string]string{
		`ca = "` + bad + `"`:                                "bad.pem\" holds no PEM certificate",
		`ca = "` + dir + `"`:                                "is not a regular file",
		`cert = "` + bad + `"` + "\nkey = \"" + bad + `"`:   "export.otlp.cert: ",
		`key = "` + bad + `"`:                               "export.otlp.key: is there without a certificate; set cert too",
		`cert = "/not/there"` + "\nkey = \"/nor/this\"":     "no such file",
		`cert = "` + bad + `"` + "\nkey = \"/dev/urandom\"": "is not a regular file",
	} {
		refused(t, Default(), "[export.otlp]\n"+text, want)
	}
}
