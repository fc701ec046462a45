//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/scope"
)

type outputs map[string][]byte

// outputs repeats a scenario under `run` and `record` and collects every output.
func (s *stage) outputs(toml string, happens func(round string)) outputs {
	s.Helper()
	dir := s.TempDir()
	out := outputs{}
	spans, recording := filepath.Join(dir, "spans"), filepath.Join(dir, "it.rec")
	harness.Check(s.T, s.scope.Stop())
	out.add("first log", s.scope.LogText())

	toml += "[log]\nlevel = \"debug\"\n[metrics]\nlisten = \"127.0.0.1:0\"\n"
	s.startScope(scope.Options{TOML: toml + fmt.Sprintf("[export.file]\npath = %q\n", spans)})
	happens("run")
	_, text := s.scope.Ask(s, "/metrics", "application/openmetrics-text; version=1.0.0")
	out.add("metrics", text)
	harness.Check(s.T, s.scope.Stop())
	out.add("log of run", s.scope.LogText())
	out.add("OTLP file", string(s.read(spans)))
	out.add("Jaeger", s.inJaeger(len(spansIn(s.T, spans))))
	out.add("config print", s.run("config", "print", s.scope.Config()))
	out.add("config check", s.run("config", "check", s.scope.Config()))

	s.startScope(scope.Options{Args: []string{"record", recording}, TOML: toml})
	happens("record")
	harness.Check(s.T, s.scope.Stop())
	out.add("log of record", s.scope.LogText())
	out.add("recording", string(s.read(recording)))
	out.add("show", s.run("show", recording, "--all", "--all-commands"))
	out.add("show in colours", s.run("show", recording, "--all", "--all-commands", "--color", "always"))
	out.add("page", s.run("show", recording, "--html", "--all"))
	out.add("show as JSON", s.run("show", recording, "--format", "json"))
	for name, content := range out {
		s.Logf("%s: %d bytes", name, len(content))
	}
	return out
}

func (o outputs) add(name, content string) { o[name] = []byte(content) }

func (s *stage) inJaeger(n int) string {
	s.Helper()
	var text strings.Builder
	all := s.spans("cniscope", func(all []*span) error {
		if len(all) != n {
			return fmt.Errorf("Jaeger has %d spans, the file %d", len(all), n)
		}
		return nil
	})
	for _, x := range all {
		line := harness.Must(protojson.Marshal(x.Span))(s.T)
		fmt.Fprintf(&text, "%s\n%q\n", line, x.resource)
	}
	return text.String()
}

func (s *stage) run(args ...string) string {
	s.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		s.Fatalf("cniscope %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (s *stage) logged(what string, n int) {
	s.Helper()
	harness.Eventually(s, func() error {
		if log := s.scope.LogText(); strings.Count(log, what) < n {
			return fmt.Errorf("%q was not said %d times in:\n%s", what, n, log)
		}
		return nil
	})
}

func (s *stage) read(file string) []byte {
	s.Helper()
	text := harness.Must(os.ReadFile(file))(s.T)
	return text
}

func around(text []byte, at int) []byte {
	return bytes.TrimSpace(text[max(0, at-120):min(len(text), at+120)])
}
