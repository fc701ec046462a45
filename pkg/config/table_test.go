package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/cniscope/cniscope/test/harness"
)

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
