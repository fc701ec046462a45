package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func TestConfigCommands(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		harness.Check(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	right := file("right.toml", "slow.command = \"1s\"\n[export.otlp]\nheaders = { authorization = \"hunter2\" }\n")
	wrong := file("wrong.toml", "slow.comand = \"1s\"\nlog.level = 3\n")
	plain := file("plain.toml", "[export.otlp]\nendpoint = \"http://192.0.2.1:4317\"\nheaders = { authorization = \"hunter2\" }\n")
	silent := file("silent.toml", "[sampling]\nratio = 0.0\nkeep = []\nparent_based = false\n")
	t.Setenv("NODE_NAME", "node-7")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
	const warned = "warning: environment: OTEL_EXPORTER_OTLP_COMPRESSION: \"zstd\" is not known"

	tests := []struct {
		args []string
		fail bool
		want []string
	}{
		{[]string{"check", right}, false, []string{"right.toml: valid\n", "  slow.command: 1s (default 250ms)\n"}},
		{[]string{"check", plain}, false, []string{"warning: " + plain + ":3:1: export.otlp.headers: ", "plain.toml: valid, with warnings\n"}},
		{[]string{"check", silent}, false, []string{"warning: " + silent + ":3:1: sampling.keep: ", "no trace is exported"}},
		{[]string{"check", "--strict", plain}, true, []string{"warning: "}},
		{[]string{"check", "--strict", right}, false, []string{"right.toml: valid\n"}},
		{[]string{"check", wrong}, true, []string{"wrong.toml:1:6: slow.comand", "wrong.toml:2:5: log.level"}},
		{[]string{"check", "/not/there.toml"}, true, []string{"/not/there.toml"}},
		{[]string{"check"}, true, nil},
		{[]string{"print"}, false, []string{`node = "node-7"  # default: ""`, "[state]\ndir = "}},
		{[]string{"print", right}, false, []string{`command = "1s"  # default: "250ms"`, `headers = { authorization = "[redacted]" }`}},
		{[]string{"print", wrong}, true, []string{"wrong.toml:1:6"}},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args[:1], " "), func(t *testing.T) {
			out, diagnostics, err := cniscope(t, append([]string{"config"}, tt.args...)...)
			if (err != nil) != tt.fail {
				t.Fatalf("error %v", err)
			}
			if err != nil {
				out += err.Error()
			}
			harness.Says(t, out, tt.want...)
			if named := strings.Contains(diagnostics, warned); named != (tt.args[0] == "print" && !tt.fail) || strings.Contains(diagnostics, "warning: :") {
				t.Errorf("the variable is named: %t, in %s", named, diagnostics)
			}
			if strings.Contains(out, "hunter2") {
				t.Error("a secret is shown")
			}
		})
	}
}
