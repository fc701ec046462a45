package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

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
