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

func TestOptionsFromElsewhereAreRepaired(t *testing.T) {
	o := Default()
	o.Limits.Settle = 3 * time.Second
	o.Slow.Command = 1234567 * time.Nanosecond * 1000
	o.Slow.Rules = []Rule{{"ip*", time.Second}}
	o.Sampling.Keep = nil
	whole := o
	if said := o.repair(); len(said) != 0 || !reflect.DeepEqual(o.Limits, whole.Limits) || !reflect.DeepEqual(o.Slow, whole.Slow) {
		t.Errorf("of good options it is said %q, they became %+v", said, o)
	}

	o.Limits = Limits{Settle: -time.Second, MaxHold: 1 << 62, Processes: 100_000_000, Operations: -1, Images: 1 << 40}
	o.Slow.Rules = make([]Rule, 100_000)
	o.Sampling.PerSecond = -5
	o.Sampling.Keep = []string{strings.Repeat("x", 10_000)}
	o.Resource.Attributes = map[string]string{"a": strings.Repeat("x", 1<<20)}
	said := o.repair()
	if !reflect.DeepEqual(o.Limits, Default().Limits) || len(o.Slow.Rules) != 0 || o.Sampling.PerSecond != Default().Sampling.PerSecond ||
		!reflect.DeepEqual(o.Sampling.Keep, Default().Sampling.Keep) || len(o.Resource.Attributes) != 0 {
		t.Errorf("%+v", o)
	}
	all := strings.Join(said, "\n")
	if len(said) != 11 || len(all) > 2000 || !strings.Contains(all, "limits.processes = 100000000 cannot be; the default 8192 is taken") {
		t.Errorf("%d: %s", len(said), all)
	}
}

// The text follows "key =".
func setTo(t *testing.T, opt option, o *Options, text string) []*Problem {
	t.Helper()
	var decoded map[string]any
	if err := toml.Unmarshal([]byte("is = "+text), &decoded); err != nil {
		t.Fatalf("%s = %s: %v", opt.key, text, err)
	}
	return opt.set(o, decoded["is"])
}

// another valid value.
func another(opt option) string {
	least, most, _ := strings.Cut(opt.tag.Get("range"), "..")
	text := map[string]string{
		"endpoint": `"http://a:1"`, "listen": `":1"`, "loopback": `"127.0.0.1:1"`, "group": `"g"`, "pattern": `"p*"`,
		"path": `"/p"`, "socket": `"/p"`, "program": `"/p"`, "": `"t"`,
	}[opt.check]
	if opt.system == Windows {
		text = strings.NewReplacer(`"/p"`, `'C:/p'`).Replace(text)
		if opt.check == "socket" {
			text = `'\\.\pipe\p'`
		}
	}
	if len(opt.words) > 0 {
		text = quote(opt.words[len(opt.words)-1])
		if opt.written() == text {
			text = quote(opt.words[0])
		}
	}
	switch is := opt.usual.(type) {
	case bool:
		return map[bool]string{true: "false", false: "true"}[is]
	case int, float64:
		return least // also of a ratio: a whole number is one
	case int64, time.Duration:
		return quote(most)
	case []string:
		if opt.check == "" && len(opt.words) == 0 {
			text = `"p*"`
		}
		return "[" + text + "]"
	case map[string]string, map[string]Secret:
		return `{ "a.b" = "c" }`
	case []Rule:
		return `[{ command = "p*", threshold = "1s" }]`
	case []NamespaceRule:
		return `[{ namespace = "p*", ratio = 0.5 }]`
	}
	return text
}

// Each option accepts its default and another value, and rejects what its tags exclude. Nothing else changes.
func TestEachOption(t *testing.T) {
	for _, system := range []System{Linux, Windows} {
		for _, opt := range system.options() {
			base, o := DefaultFor(system), DefaultFor(system)
			if faults := setTo(t, opt, &o, opt.written()); len(faults) > 0 || !reflect.DeepEqual(o, base) {
				t.Errorf("%s = %s, the default: %v", opt.key, opt.written(), faults)
			}
			value := another(opt)
			if faults := setTo(t, opt, &o, value); len(faults) > 0 || reflect.DeepEqual(o, base) {
				t.Errorf("%s: %s = %s: %+v", system, opt.key, value, faults)
				continue
			}
			changes := o.Changes(base)
			fixed := opt.fixed() != ""
			if fixed != (len(changes) == 0) || !fixed && (changes[0].Key != opt.key || len(changes) != 1) {
				t.Errorf("%s = %s: the changes are %v", opt.key, value, changes)
			}
			inForce := base.running(o)
			if reflect.DeepEqual(inForce, o) != opt.live || reflect.DeepEqual(inForce, base) == opt.live {
				t.Errorf("%s: live is %v, and in force is %v", opt.key, opt.live, inForce.Changes(base))
			}
			same := setTo(t, opt, &base, opt.toml(opt.of(&o).Interface()))
			if _, secret := opt.usual.(map[string]Secret); len(same) > 0 || !secret && !reflect.DeepEqual(base, o) {
				t.Errorf("%s = %s is written as %s", opt.key, value, opt.toml(opt.of(&o).Interface()))
			}
			for _, wrong := range outside(opt) {
				before := o
				faults := setTo(t, opt, &o, wrong)
				if len(faults) == 0 || faults[0].Remedy == "" || !reflect.DeepEqual(o, before) {
					t.Errorf("%s = %s is taken, or has no remedy: %v", opt.key, wrong, faults)
				}
			}
			if system == Here() {
				carried(t, opt, o)
			}
		}
	}
}

// Of another type, and just beyond the range.
func outside(opt option) []string {
	values := []string{"1979-05-27", "[[1]]"}
	least, most, _ := strings.Cut(opt.tag.Get("range"), "..")
	switch opt.usual.(type) {
	case float64:
		return append(values, "-0.1", "1.1", "nan", `"1"`)
	case int:
		return append(values, fmt.Sprint(number(least)-1), fmt.Sprint(number(most)+1), "1.5")
	case int64:
		return append(values, fmt.Sprint(number(least)-1), fmt.Sprint(number(most)+1), `"8MB"`)
	case time.Duration:
		return append(values, quote((span(least) - 1).String()), quote((span(most) + 1).String()), `"7"`, "7")
	case bool:
		return append(values, "1", `"true"`)
	case string:
		return append(values, "true", `"a\u001b"`, quote("/"+strings.Repeat("a", textLength)))
	case map[string]string, map[string]Secret:
		return append(values, "{ a = 1 }", `{ "" = "a" }`)
	}
	items := strings.Repeat(another(opt)[1:len(another(opt))-1]+",", 101)
	return append(values, "1", "[1]", "["+items+"]")
}

// In a recording's header.
func carried(t *testing.T, opt option, o Options) {
	t.Helper()
	if opt.key == "relay.wait" {
		o.Relay.Listen = "127.0.0.1:4319" // otherwise the wait is ignored
	}
	header := harness.Must(json.Marshal(o.Recorded()))(t)
	got, said, err := FromRecording(header)
	if same := reflect.DeepEqual(opt.of(&got).Interface(), opt.of(&o).Interface()); err != nil || len(said) > 0 ||
		same != (opt.record != "") && opt.key != "relay.listen" {
		t.Errorf("%s: through a recording it is %v (%v, %q)", opt.key, opt.of(&got), err, said)
	}
}
