package cniconf

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/test/harness"
)

const bridge = `{"cniVersion":"1.0.0","name":"pods","plugins":[
	{"type":"bridge","ipam":{"type":"host-local","token":"canary"},"password":"canary"},
	{"type":"portmap","capabilities":{"portMappings":true}}]}`

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		file := filepath.Join(dir, name)
		harness.Check(t, os.MkdirAll(filepath.Dir(file), 0o700))
		harness.Check(t, os.WriteFile(file, []byte(content), 0o600))
	}
	return dir
}

func digests(key string) Digest { return Digest{Key: []byte(key), Secret: redact.Confidential} }

func TestLoad(t *testing.T) {
	dir := folder(t, map[string]string{
		"20-bridge.conflist": bridge,
		"10-flat.conf":       `{"cniVersion":"0.4.0","name":"flat","type":"macvlan","ipam":{"type":"dhcp"}}`,
		"30-old.json":        `{"name":"old\u001b[2J","type":"ptp"}`,
		// Plugins in separate files follow those of the list.
		"40-parts.conflist":      `{"cniVersion":"1.1.0","cniVersions":["1.0.0","0.4.0"],"name":"parts","plugins":[{"type":"bridge"}]}`,
		"parts/20-b.conf":        `{"type":"firewall"}`,
		"parts/10-a.conf":        `{"type":"tuning"}`,
		"parts/10-a.conflist":    `{}`,
		"50-inlined.conflist":    `{"cniVersion":"1.1.0","name":"inlined","loadOnlyInlinedPlugins":true,"plugins":[{"type":"bridge"}]}`,
		"inlined/10-a.conf":      `{"type":"tuning"}`,
		"60-outside.conflist":    `{"cniVersion":"1.1.0","name":"../parts","plugins":[{"type":"bridge"}]}`,
		"99-not-this.conf.saved": `{`,
		"folder.conf/x":          ``,
	})
	networks, problems := Load(dir, digests("key"))
	for i := range networks {
		harness.Equal(t, len(networks[i].Digest), 4, "the digest of", networks[i].Name, networks[i].Digest)
		networks[i].Digest = "" // libcni may rewrite the text; see TestDigest
	}
	want := []event.Network{
		{Name: "flat", CNIVersion: "0.4.0", File: "10-flat.conf", Plugins: []event.Plugin{{Type: "macvlan", IPAM: "dhcp"}}},
		{Name: "pods", CNIVersion: "1.0.0", File: "20-bridge.conflist", Plugins: []event.Plugin{{Type: "bridge", IPAM: "host-local"}, {Type: "portmap"}}},
		{Name: `old\x1b[2J`, File: "30-old.json", Plugins: []event.Plugin{{Type: "ptp"}}},
		{Name: "parts", CNIVersion: "1.1.0", File: "40-parts.conflist", Plugins: []event.Plugin{{Type: "bridge"}, {Type: "tuning"}, {Type: "firewall"}}},
		{Name: "inlined", CNIVersion: "1.1.0", File: "50-inlined.conflist", Plugins: []event.Plugin{{Type: "bridge"}}},
		{Name: "../parts", CNIVersion: "1.1.0", File: "60-outside.conflist", Plugins: []event.Plugin{{Type: "bridge"}}},
	}
	if len(problems) > 0 || !reflect.DeepEqual(networks, want) {
		t.Fatalf("problems %v\ngot  %+v\nwant %+v", problems, networks, want)
	}
}

// The digest depends on the configuration, not on its formatting.
func TestDigest(t *testing.T) {
	digestOf := func(content string) string {
		networks, problems := Load(folder(t, map[string]string{"x.conflist": content}), digests("key"))
		if len(networks) != 1 || len(problems) > 0 {
			t.Fatalf("%s: %v %v", content, networks, problems)
		}
		return networks[0].Digest
	}
	is := digestOf(bridge)
	if renewed := digestOf(strings.Replace(bridge, `"password":"canary"`, `"password":"another"`, 1)); renewed != is {
		t.Errorf("%s, and with another password %s", is, renewed)
	}
	if networks, _ := Load(folder(t, map[string]string{"x.conflist": bridge}), digests("another key")); networks[0].Digest == is {
		t.Errorf("another key has the same digest: %s", is)
	}
	if networks, _ := Load(folder(t, map[string]string{"x.conflist": bridge}), Digest{}); networks[0].Digest != "" {
		t.Errorf("without a key there is a digest: %s", networks[0].Digest)
	}
	harness.Equal(t, digestOf(strings.NewReplacer(",", " ,\n ", "{", "{ ").Replace(bridge)), is, "the digest with other blanks")
	for _, change := range []*strings.Replacer{
		strings.NewReplacer(`"portMappings":true`, `"portMappings":false`),
		strings.NewReplacer(`"cniVersion":"1.0.0"`, `"cniVersion":"0.4.0"`),
	} {
		if now := digestOf(change.Replace(bridge)); now == is {
			t.Errorf("%s has the digest of another: %s", change.Replace(bridge), now)
		}
	}
}

func TestBrokenFiles(t *testing.T) {
	tests := map[string]struct {
		name, content, says string
	}{
		"syntax":           {"x.conflist", "{\n\t\"name\": canary\n}", "line 2, column 10"},
		"cut":              {"x.conf", "{\n\"name\":", "line 2, column 7: error parsing configuration: unexpected end"},
		"empty":            {"x.conf", "", "line 1, column 1"},
		"no object":        {"x.conflist", "[]", "parsing configuration list"},
		"no name":          {"x.conflist", `{"plugins":[{"type":"bridge"}]}`, "no name"},
		"no plugins":       {"x.conflist", `{"name":"x","plugins":[]}`, "no plugins"},
		"no plugins key":   {"x.conflist", `{"name":"x"}`, "no plugins"},
		"plugin of number": {"x.conflist", `{"name":"x","plugins":[{"type":7}]}`, "plugin config 0"},
		"no type":          {"x.conf", `{"name":"x"}`, "missing 'type'"},
		"a list as .conf":  {"x.conf", bridge, "missing 'type'"},
		"too long":         {"x.conf", strings.Repeat(" ", maxBytes+1), "longer than"},
		"broken part":      {"x/y.conf", "{", "x.conflist: its plugin y.conf: line 1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{test.name: test.content, "z-good.conflist": bridge}
			if filepath.Dir(test.name) != "." {
				files["x.conflist"] = `{"name":"x","plugins":[{"type":"bridge"}]}`
			}
			networks, problems := Load(folder(t, files), digests("key"))
			if len(networks) != 1 || networks[0].Name != "pods" {
				t.Errorf("the good file is hidden: %+v", networks)
			}
			if len(problems) != 1 {
				t.Fatalf("problems %v, want one", problems)
			}
			said := problems[0].Error()
			harness.Says(t, said, test.says, "containerd loads no network until")
			if strings.Contains(said, "canary") {
				t.Errorf("the text of the file is in %q", said)
			}
		})
	}
}

// By default the runtime reads one file, so a broken later one is harmless.
func TestBrokenFileAfterASoundOne(t *testing.T) {
	_, problems := Load(folder(t, map[string]string{"10.conflist": bridge, "20.conf": "{"}), digests("key"))
	if len(problems) != 1 || !strings.HasSuffix(problems[0].Error(), "; correct or remove it") {
		t.Fatalf("problems %v", problems)
	}
}

func TestLoadIsBounded(t *testing.T) {
	files := map[string]string{}
	plugins := strings.TrimSuffix(strings.Repeat(`{"type":"bridge"},`, 1000), ",")
	for i := range 100 {
		files[fmt.Sprintf("%03d.conflist", i)] = fmt.Sprintf(`{"name":%q,"loadOnlyInlinedPlugins":true,"plugins":[%s]}`, strings.Repeat("n", 10_000), plugins)
	}
	networks, problems := Load(folder(t, files), digests("key"))
	if len(networks) != maxFiles || len(networks[0].Plugins) != maxPlugins || len(networks[0].Name) > 256 {
		t.Errorf("%d networks, the first of %d plugins", len(networks), len(networks[0].Plugins))
	}
	if len(problems) != 1 || !strings.Contains(problems[0].Error(), "only the first 64") {
		t.Errorf("problems %v", problems)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("x.conflist", []byte(bridge))
	f.Add("x.conf", []byte(`{"name":"x","type":"y","ipam":{}}`))
	f.Add("x.json", []byte("{\n\"name\":"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		file := filepath.Join(dir, "x"+filepath.Ext(filepath.Base(name)))
		if strings.ContainsRune(file, 0) || os.WriteFile(file, content, 0o600) != nil {
			t.Skip()
		}
		defer os.Remove(file)
		networks, problems := Load(dir, digests("key"))
		for _, n := range networks {
			if len(n.Plugins) == 0 {
				t.Errorf("a network without plugins: %+v", n)
			}
		}
		for _, p := range problems {
			if len(p.Error()) > 2048 || strings.ContainsAny(p.Error(), "\x1b\n") {
				t.Errorf("problem %q", p)
			}
		}
	})
}
