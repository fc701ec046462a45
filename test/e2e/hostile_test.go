//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// Hostile names: they clear the screen, set the title, forge lines, reverse text, and are invalid UTF-8.
const (
	hostileText = "evil\x1b[2J\x1b]0;title\a\r\nlevel=INFO\tforged\u009b31m\u202egnp.\u2028\u200b\x7f"
	hostileName = hostileText + "\xff\xc3("
)

// No foreign name reaches a terminal, a log or a backend unchanged.
func TestHostileNamesReachNoTerminal(t *testing.T) {
	commands := t.TempDir()
	file := filepath.Join(commands, hostileName)
	harness.Check(t, harness.CopyFile("/bin/sleep", file))
	script := filepath.Join(commands, "script"+hostileName)
	harness.Check(t, os.WriteFile(script, []byte("#!/bin/sh\n:\n"), 0o755))
	plugin := "plugin" + hostileText
	s := set(t, true, rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(), rig.Test(plugin)}}},
		Plugins: map[string][]byte{plugin: rig.Script(fmt.Sprintf(
			"'%[1]s' 0.3\nbash -c 'exec -a \"$0\" \"$@\"' 'argv0%[2]s' '%[1]s' 0 '%[2]s'; '%[3]s' '%[2]s'\n"+
				"case $CNI_ARGS in *K8S_POD_NAME=bad-*) [ $CNI_COMMAND = DEL ] || fail 11 'no';; esac",
			file, hostileName, script))},
	}, scope.Options{})

	out := s.outputs("[probe]\narguments = \"all\"\n", func(round string) {
		_, err := s.rig.RunPod(s.ctx, rig.PodOptions{
			Namespace: "shop" + hostileText, Name: round + hostileText, Hostname: "web",
			Labels:      map[string]string{"label" + hostileText: hostileText},
			Annotations: map[string]string{"cniscope.dev/" + hostileText: hostileText},
		})
		harness.Check(t, err)
		if _, err := s.rig.RunPod(s.ctx, rig.PodOptions{Name: "bad-" + round + hostileText, Hostname: "bad"}); err == nil {
			t.Error("the plugin was to fail")
		}
	})
	for name, content := range out {
		text := string(content)
		if name == "show in colours" {
			for _, color := range []string{"\x1b[31;1m", "\x1b[33;1m", "\x1b[2m", "\x1b[1m", "\x1b[0m"} {
				text = strings.ReplaceAll(text, color, "")
			}
		}
		harmless(t, name, text)
		harmlessJSON(t, name, content)
	}
	for name, what := range map[string]string{
		"log of run": `evil\\x1b[2J\\x1b]0;title\\x07\\x0d\\nlevel=INFO`, "show": `evil\x1b[2J`, "recording": `evil\\x1b[2J`,
		"OTLP file": `argv0evil\\x1b[2J`, "Jaeger": `\\xff\\xc3(`,
	} {
		if !bytes.Contains(out[name], []byte(what)) {
			t.Errorf("%s does not hold %q:\n%s", name, what, out[name])
		}
	}
}

func harmless(t *testing.T, name, text string) {
	t.Helper()
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			t.Errorf("%s is no UTF-8 at %d: %q", name, i, around([]byte(text), i))
		case r == '\n' || unicode.IsPrint(r):
			continue
		default:
			t.Errorf("%s holds %q: %q", name, r, around([]byte(text), i))
		}
		return
	}
}

func harmlessJSON(t *testing.T, name string, lines []byte) {
	t.Helper()
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			harmless(t, name+", decoded", strings.ReplaceAll(v, "\n", "\x00"))
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for key, e := range v {
				walk(key)
				walk(e)
			}
		}
	}
	in := bufio.NewScanner(bytes.NewReader(lines))
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var v any
		if json.Unmarshal(in.Bytes(), &v) == nil {
			walk(v)
		}
	}
}
