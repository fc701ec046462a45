package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/harness"
)

// schema reads one of docs/schemas.
func schema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	return harness.Must(compiler.Compile(filepath.FromSlash("../../docs/schemas/" + name + ".json")))(t)
}

// valid checks one document.
func valid(t *testing.T, s *jsonschema.Schema, what string, document []byte) {
	t.Helper()
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if err := s.Validate(instance); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// everyRecording is all of them that the tree has.
func everyRecording(t *testing.T) (files []string) {
	t.Helper()
	for _, pattern := range []string{"examples/recordings/*.rec*", "docs/*.rec*", "pkg/*/testdata/*.rec*"} {
		found, err := filepath.Glob(filepath.FromSlash("../../" + pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: no recordings, %v", pattern, err)
		}
		files = append(files, found...)
	}
	return files
}

// What show, --summary and diff print of every recording is as docs/schemas say, and no field is
// without a description there. Attributes are those of docs/spans.md.
func TestDocumentsOfRecordings(t *testing.T) {
	spans, summary, difference := schema(t, "show"), schema(t, "summary"), schema(t, "diff")
	documented := documentedAttributes(t)
	all, keys := everyRecording(t), regexp.MustCompile(`"key":"([^"]+)"`)
	for i, file := range all {
		name := filepath.Base(file)
		out, _, err := cniscope(t, "show", "--format", "json", file)
		if err != nil {
			t.Fatal(name, err)
		}
		for line := range strings.Lines(out) {
			valid(t, spans, name, []byte(line))
			for _, key := range keys.FindAllStringSubmatch(line, -1) {
				if !documented(key[1]) {
					t.Errorf("%s: docs/spans.md does not have %s", name, key[1])
				}
			}
		}
		out, _, err = cniscope(t, "show", "--summary", "--format", "json", file)
		if err != nil {
			t.Fatal(name, err)
		}
		valid(t, summary, name, []byte(out))
		out, _, err = cniscope(t, "diff", "--format", "json", all[max(i-1, 0)], file)
		if err != nil {
			t.Fatal(name, err)
		}
		valid(t, difference, name, []byte(out))
	}
}

// documentedAttributes tells which attributes docs/spans.md has; some of its names end in a star or
// name what is below them.
func documentedAttributes(t *testing.T) func(key string) bool {
	t.Helper()
	doc := harness.Must(os.ReadFile("../../docs/spans.md"))(t)
	text := string(doc)
	return func(key string) bool {
		for name := key; ; {
			if strings.Contains(text, "`"+name+"`") || strings.Contains(text, "`"+name+".*`") || strings.Contains(text, "`"+name+"=") {
				return true
			}
			above := strings.LastIndexByte(name, '.')
			if above < 0 {
				return false
			}
			name = name[:above]
		}
	}
}

// What ps prints is as its schema says: of calls of which all is known, of some of which little is,
// and of none.
func TestDocumentOfPS(t *testing.T) {
	full := control.Call{
		Namespace: "shop", Pod: "web-0", ContainerID: "c1", Command: "ADD", IfName: "eth0", Plugin: "bridge", Age: time.Minute,
		Runs: "iptables", PID: 1, Running: time.Second, State: "S", Waits: "hrtimer_nanosleep", Asks: "/run/agent.sock", Agent: "agentd", Asking: time.Second,
		Polls: "/run/agent.lock",
	}
	for name, calls := range map[string][]control.Call{"none": nil, "two": {full, {Command: "STATUS", Plugin: "bridge", Runs: "bridge"}}} {
		dir := t.TempDir()
		end := answerAt(t, dir, control.Handlers{ReadHandlers: control.ReadHandlers{
			Calls: func() []control.Call { return calls },
		}})
		options := filepath.Join(dir, "cniscope.toml")
		harness.Check(t, os.WriteFile(options, []byte("[state]\ndir = \""+dir+"\"\n"), 0o600))
		out, _, err := cniscope(t, "ps", "--format", "json", "--config", options)
		end()
		harness.Check(t, err)
		valid(t, schema(t, "ps"), name, []byte(out))
		if strings.Contains(out, "null") {
			t.Errorf("%s: null in %s", name, out)
		}
	}
}

// What doctor prints is as its schema says: of this machine, whatever it lacks, and of every outcome.
func TestDocumentOfDoctor(t *testing.T) {
	dir := t.TempDir()
	options := filepath.Join(dir, "cniscope.toml")
	harness.Check(t, os.WriteFile(options, []byte("[state]\ndir = \""+dir+"\"\n[cni]\nconf_dir = \""+dir+"\"\n"), 0o600))
	out, _, _ := cniscope(t, "doctor", "--format", "json", "--config", options, "--answer-timeout", "100ms")
	valid(t, schema(t, "doctor"), "this machine", []byte(out))

	for name, report := range map[string]doctor.Report{
		"nothing": {},
		"every outcome": {
			Node: "node-a", Time: time.Now(), Took: time.Second,
			Findings: []doctor.Finding{
				{Check: "nri", Level: doctor.Problem, Summary: "off", Evidence: []string{"it says so"}, Remedy: []string{"switch it on"}},
				{Check: "clock", Level: doctor.Warning},
				{Check: "kernel", Level: doctor.Note},
			},
			Checks: []doctor.Outcome{
				{Name: "nri", State: doctor.Found},
				{Name: "clock", State: doctor.OK},
				{Name: "kernel", State: doctor.NotApplicable, Reason: "no kernel"},
				{Name: "otlp", State: doctor.Unchecked, Reason: "be root"},
			},
		},
	} {
		document := harness.Must(json.Marshal(newDoctorDocument(report)))(t)
		valid(t, schema(t, "doctor"), name, document)
		if strings.Contains(string(document), "null") {
			t.Errorf("%s: null in %s", name, document)
		}
	}
	out, _, err := cniscope(t, "version", "--format", "json")
	harness.Check(t, err)
	valid(t, schema(t, "version"), "version", []byte(out))
	var ready bytes.Buffer
	harness.Check(t, (doctorFlags{format: "json"}).ready(&ready, doctor.Gate{}, time.Second))
	valid(t, schema(t, "doctor-ready"), "ready", ready.Bytes())
}

// Commands that change the node or read its files print documents, too.
func TestDocumentsOfTheNode(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.toml"), filepath.Join(dir, "bad.toml")
	harness.Check(t, os.WriteFile(good, []byte("[slow]\ncall = \"3s\"\n[state]\ndir = \""+dir+"\"\n"), 0o600))
	harness.Check(t, os.WriteFile(bad, []byte("[slow]\ncal = 1\n"), 0o600))
	for _, c := range []struct{ schema, args, says string }{
		{"config", "config check " + good, `"value": "3s"`},
		{"config", "config check " + bad, `"line": 2`},
		{"config", "config check " + dir + "/none.toml", `"what": "cannot read the configuration file: `},
		{"config", "config print " + good, `"default": "2s"`},
		{"config", "config print", `"key": "slow.call"`},
		{"install", "install --dry-run --no-containerd --root " + dir, `"does": "new"`},
		{"install", "install --no-containerd --root " + dir, `"does": "new"`},
		{"install", "uninstall --dry-run --root " + dir, `"does": "removed"`},
		{"status", "status --root " + dir, `"state": "as installed"`},
		{"status", "status --root " + t.TempDir() + " --config " + good, `"schema": "cniscope.dev/status/v1"`},
	} {
		out, diagnostics, err := cniscope(t, append(strings.Fields(c.args), "-o", "json")...)
		valid(t, schema(t, c.schema), c.args, []byte(out))
		harness.Says(t, out, c.says)
		if strings.Contains(out, "null") {
			t.Errorf("%s: null in %s: %s %v", c.args, out, diagnostics, err)
		}
	}
	valid(t, schema(t, "record"), "record", harness.Must(json.Marshal(recordDocument{"cniscope.dev/record/v1", "x.rec", 3, 1}))(t))
}

// A field that no schema has makes a document invalid: else nothing would be found above.
func TestSchemasAreStrict(t *testing.T) {
	for _, name := range []string{"show", "summary", "diff", "ps", "why", "top", "baseline", "doctor", "doctor-ready", "version", "status", "config", "install", "record"} {
		file := harness.Must(os.ReadFile("../../docs/schemas/" + name + ".json"))(t)
		var document any
		harness.Check(t, json.Unmarshal(file, &document))
		schema(t, name)
		strict(t, name, document)
	}
}

func strict(t *testing.T, at string, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		if properties, is := v["properties"].(map[string]any); is {
			harness.Equal(t, v["additionalProperties"], false, at, "lets through what it does not name")
			for name, property := range properties {
				if about, _ := property.(map[string]any)["description"].(string); about == "" {
					t.Errorf("%s: %s is not described", at, name)
				}
			}
		}
		for name, below := range v {
			strict(t, at+"."+name, below)
		}
	case []any:
		for _, below := range v {
			strict(t, at+"[]", below)
		}
	}
}

// What is typed to ask for the version is answered on standard output, in every spelling.
func TestEverySpellingOfTheQuestion(t *testing.T) {
	for _, args := range []string{"version", "--version", "version --format text"} {
		if out, _, err := cniscope(t, strings.Fields(args)...); err != nil || out != thisBuild().String()+"\n" {
			t.Errorf("%s: %q, %v", args, out, err)
		}
	}
}
