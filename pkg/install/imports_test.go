package install

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/cniscope/cniscope/test/harness"
)

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
