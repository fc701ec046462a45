package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// Each direct dependency has an explanation.
func TestEachDirectDependencyIsExplained(t *testing.T) {
	var module []byte
	for _, file := range []string{"../../go.mod", "../../configs/release/go.mod"} {
		requirements := harness.Must(os.ReadFile(file))(t)
		module = append(module, requirements...)
	}
	manual := harness.Must(os.ReadFile("../../docs/contributing/dependencies.md"))(t)
	required := map[string]bool{}
	for line := range strings.Lines(string(module)) {
		fields := strings.Fields(line)
		if !strings.HasPrefix(line, "\t") || len(fields) < 2 || strings.Contains(line, "// indirect") || fields[0] == "github.com/cniscope/cniscope" {
			continue
		}
		required[fields[0]] = true
		if !strings.Contains(string(manual), "`"+fields[0]+"`") {
			t.Errorf("docs/contributing/dependencies.md does not say why %s is there", fields[0])
		}
	}
	if len(required) == 0 {
		t.Fatal("go.mod cannot be read")
	}
	for _, named := range regexp.MustCompile("`([a-z0-9.]+\\.[a-z]+/[^`]+)`").FindAllStringSubmatch(string(manual), -1) {
		if !required[named[1]] {
			t.Errorf("docs/contributing/dependencies.md explains %s, which is not there", named[1])
		}
	}
}
