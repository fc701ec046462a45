package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/cniscope/cniscope/test/harness"
)

func TestTheExampleFileIsTheDefaults(t *testing.T) {
	const file = "../../configs/cniscope.toml"
	data := harness.Must(os.ReadFile(file))(t)
	as, err := Parse(file, data)
	if err != nil {
		t.Fatalf("as it is: %v", err)
	}
	if d := as.Diff(Default()); len(d) > 0 {
		t.Errorf("as it is, it changes %q", d)
	}

	// "#name = …" is an option, "# Text" an explanation.
	commented := regexp.MustCompile(`(?m)^#([a-z_]+ = )`)
	all, err := Parse(file, commented.ReplaceAll(data, []byte("$1")))
	if err != nil {
		t.Fatalf("with every option taken in: %v", err)
	}
	if d := all.Diff(Default()); len(d) > 0 {
		t.Errorf("the defaults in it are stale: %q", d)
	}
	set, _ := locate(commented.ReplaceAll(data, []byte("$1")))
	for _, opt := range Linux.settable() {
		if _, ok := set[opt.key]; !ok {
			t.Errorf("%s is not explained", opt.key)
		}
	}
}

// Lists and maps included.
func TestSettingAnOptionWritesIntoNoOtherOptions(t *testing.T) {
	parse := func(base Options, name string) Options {
		o := harness.Must(over(base, strings.ReplaceAll(`
[sampling]
keep = ["slow", "failed"]
annotation_namespaces = ["X"]
rule = [{ namespace = "X", ratio = 0.5 }]
[slow]
rule = [{ command = "X", threshold = "1s" }]
[export.otlp]
headers = { h = "X" }
[resource]
attributes = { a = "X" }
[probe]
agents = ["X"]
callers = ["/X"]
[trace]
baggage = ["X"]
`, "X", name)))(t)
		return o
	}
	base := parse(Default(), "one")
	var set func(v reflect.Value, name string)
	set = func(v reflect.Value, name string) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).Type == reflect.TypeFor[judged]() {
					continue // empty in judged options; overlay clones it before it deletes
				}
				set(v.Field(i), name+"."+v.Type().Field(i).Name)
			}
		case reflect.Slice, reflect.Map:
			if v.Len() == 0 {
				t.Errorf("%s is not set by this test: teach it", name)
			}
		case reflect.Pointer, reflect.Interface, reflect.Func, reflect.Chan:
			t.Errorf("%s is a %s: options are values", name, v.Kind())
		}
	}
	set(reflect.ValueOf(base), "Options")
	over := parse(base, "two")
	if !reflect.DeepEqual(base, parse(Default(), "one")) || !reflect.DeepEqual(over, parse(Default(), "two")) {
		t.Errorf("base\n%s\nover\n%s", base.TOML(), over.TOML())
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	const canary = "hunter2"
	with := func(value string) Options {
		return harness.Must(Parse("f.toml", []byte(`export.otlp.headers = { authorization = "`+value+`" }`)))(t)
	}
	o := with(canary)
	if got := o.Export.OTLP.Headers["authorization"].Reveal(); got != canary {
		t.Fatalf("revealed %q", got)
	}
	asJSON := harness.Must(json.Marshal(o))(t)
	asTOML := harness.Must(toml.Marshal(o))(t)
	var logged strings.Builder
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("m", "options", o, "header", o.Export.OTLP.Headers["authorization"])
	shown := []string{
		string(asJSON), string(asTOML), logged.String(), o.TOML(),
		strings.Join(o.Diff(Default()), "\n"),
		strings.Join(o.Diff(with("other")), "\n"),
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		shown = append(shown, fmt.Sprintf(verb, o))
	}
	for _, s := range shown {
		for _, form := range []string{canary, fmt.Sprintf("%x", canary)} {
			if strings.Contains(s, form) {
				t.Errorf("shown in %s", s)
			}
		}
	}
	if d := o.Diff(with("other")); len(d) != 1 || d[0] != "export.otlp.headers: changed (values are not shown)" {
		t.Errorf("%q", d)
	}
}

func TestErrorsDoNotShowSecrets(t *testing.T) {
	for _, text := range []string{
		"[export.otlp.headers]\nauthorization = \"Bearer hunter2\n",
		"[export.otlp.headers]\nauthorization = \"Bearer hunter2\" x\n",
		"[export.otlp.headers]\nauthorization = Bearer hunter2\n",
		"[export.otlp.headers]\nauthorization = [\"hunter2\"]\n",
		"[export.otlp.headers]\nauthorization = \"hunter2\\u0007\"\n",
		"[export.otlp]\nheaders = \"hunter2\"\n",
		"[export.otlp]\nendpoint = \"http://me:hunter2@a:4317\"\n",
		"[export.otlp]\nendpoint = \"me:hunter2@a:4317\"\n",
		"[export.otlp]\nendpoint = \"http://me:hunter2@a:4317:x y\"\n",
	} {
		refused(t, Default(), text, "f:")
	}
}

func TestDiffSaysOldAndNew(t *testing.T) {
	o := harness.Must(Parse("f.toml", []byte(`
slow.command = "100ms"
slow.rule = [{ command = "ip*", threshold = "1s" }]
sampling.keep = []
probe.agents = ["antrea*"]
export.file.path = "/var/log/cniscope.json"
export.queue = 1024
resource.cluster = "prod east"
`)))(t)
	want := []string{
		`sampling.keep: ["slow", "failed", "hung", "partial"] -> []`,
		`slow.command: 250ms -> 100ms`,
		`slow.rule: [] -> [{ command = "ip*", threshold = "1s" }]`,
		`export.queue: 512 -> 1024 (needs a restart)`,
		`export.file.path: "" -> /var/log/cniscope.json`,
		`resource.cluster: "" -> prod east (needs a restart)`,
		`probe.agents: [] -> ["antrea*"] (needs a restart)`,
	}
	harness.DeepEqual(t, o.Diff(Default()), want)
}

func TestTOMLNamesTheDefaultsOfWhatDiffers(t *testing.T) {
	o := Default()
	o.Limits.Settle = 90 * time.Second
	if want := "settle = \"1m30s\"  # default: \"2s\"\n"; !strings.Contains(o.TOML(), want) {
		t.Errorf("%s", o.TOML())
	}
}

func over(base Options, text string) (Options, error) { return Source{Base: base, Text: text}.Load() }

// Diff returns Changes as text.
func (o Options) Diff(old Options) (lines []string) {
	for _, c := range o.Changes(old) {
		lines = append(lines, c.String())
	}
	return lines
}
