package docs

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/test/harness"
)

var update = flag.Bool("update", false, "write what is generated again")

// known-failures.md has a row for each failure that the judge knows; make golden writes them.
func TestGoldenKnownFailures(t *testing.T) {
	text, _ := read(t, "known-failures.md")
	const header = "| message, for example | from | what to do | look at | report |\n|---|---|---|---|---|\n"
	before, _, found := strings.Cut(text, header)
	if !found {
		t.Fatal("known-failures.md has no table")
	}
	var want strings.Builder
	want.WriteString(before + header)
	for _, k := range judge.KnownFailures() {
		from, report := strings.ReplaceAll(k.Who, " ", ", "), k.Report
		if from == "" {
			from = "any plugin"
		}
		if repository, number, ok := strings.Cut(report, "#"); ok {
			report = fmt.Sprintf("[%s](https://github.com/%s/issues/%s)", report, repository, number)
		}
		example := strings.TrimPrefix(k.Example, ", because ")
		fmt.Fprintf(&want, "| %s | %s | %s | %s | %s |\n", code(example), from, cell(k.Remedy), code(k.Look), report)
	}
	if want.String() == text {
		return
	}
	if !*update {
		t.Fatal("known-failures.md is not what pkg/judge/known_failures.go says: make golden")
	}
	harness.Check(t, os.WriteFile("known-failures.md", []byte(want.String()), 0o644))
}

// code is a cell that is printed as it stands; messages have single backquotes.
func code(s string) string { return "`` " + cell(s) + " ``" }

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
