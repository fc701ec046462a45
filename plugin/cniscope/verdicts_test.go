package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

const verdicts = "docs/verdicts.md"

var (
	causeName = regexp.MustCompile(`Cause\s+= "(\w+)"`)
	picture   = regexp.MustCompile("(?s)(<!-- generated: drawing of ([^\n]*) -->\n```\n)(.*?)(```\n<!-- end -->)")
	lasted    = regexp.MustCompile(`│ +([\d.]+[µmnsh]+)`)
)

// docs/verdicts.md has every cause.
func TestVerdictsAreDocumented(t *testing.T) {
	text := document(t, verdicts)
	judge, err := filepath.Glob("../../pkg/judge/*.go")
	if err != nil || len(judge) == 0 {
		t.Fatal("no rules: ", err)
	}
	for _, file := range judge {
		for _, cause := range causeName.FindAllStringSubmatch(document(t, strings.TrimPrefix(file, "../../")), -1) {
			if !strings.Contains(text, "`"+cause[1]+"`") {
				t.Errorf("%s does not have %s", verdicts, cause[1])
			}
		}
	}
}

// Each picture of docs/verdicts.md is the beginning of what `cniscope show` draws of that call; make golden writes it.
func TestGoldenPicturesOfVerdicts(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	t.Setenv("COLUMNS", "")
	recorded := harness.Must(filepath.Glob("../../pkg/judge/testdata/*.rec.gz"))(t)
	var calls []string
	for _, file := range append(recorded, "../../docs/verdicts.rec.gz") {
		drawn, _, err := cniscope(t, "show", "--color", "never", file)
		harness.Check(t, err)
		calls = append(calls, strings.Split(drawn, "\n\n")...)
	}
	pictures := 0
	generated(t, verdicts, picture, func(part []string) string {
		pictures++
		for _, call := range calls {
			if strings.HasPrefix(call, part[2]) {
				return part[1] + shortened(t, call) + part[4]
			}
		}
		t.Errorf("no recording has %s", part[2])
		return part[0]
	})
	if pictures < 15 {
		t.Errorf("%s has only %d pictures", verdicts, pictures)
	}
}

// shortened returns the drawing of a call without its remedy and its line of identities. Of the rows below plugins it has
// those that are marked, failed or lasted a tenth of the call.
func shortened(t *testing.T, call string) string {
	t.Helper()
	var b strings.Builder
	var least time.Duration
	for line := range strings.Lines(call) {
		line = strings.TrimSuffix(line, "\n")
		row := lasted.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, "  → ") || regexp.MustCompile(`^  \d{4}-\d\d-\d\d `).MatchString(line):
			continue
		case regexp.MustCompile(`^ +0 +[\d.]+[µmnsh]+$`).MatchString(line):
			total := harness.Must(time.ParseDuration(strings.Fields(line)[1]))(t)
			least = total / 10
		case row != nil && strings.HasPrefix(line, "   ") && !strings.Contains(line, "  exit "):
			if took, err := time.ParseDuration(row[1]); err != nil || took < least {
				continue
			}
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
