package main

import (
	"os"
	"strings"
	"testing"
)

const changelog = "# Changelog\n\n## [Unreleased]\n\n- Not yet.\n\n## [0.3.0] - 2026-12-24\n\n### Added\n\n- `## [0.1.0]` in a line is no heading.\n\n" +
	"## [0.3.0-rc.1] - 2026-12-01\r\n\r\n- A candidate.\r\n\n## [0.2.1] - 2026-12-01\n\n \n## [0.2.0]\n\n- No day.\n\n## [0.1.1] - 2026-02-30\n\n- No such day.\n\n## [0.1.0] - 2026-01-01 [YANKED]\n\n- Gone.\n"

func TestNotesAreTheVersionsPartOfTheChangelog(t *testing.T) {
	for number, want := range map[string]string{
		"0.3.0":      "### Added\n\n- `## [0.1.0]` in a line is no heading.",
		"0.3.0-rc.1": "- A candidate.",
	} {
		if got, err := section(changelog, number); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", number, got, err, want)
		}
	}
	for number, want := range map[string]string{
		"0.3":        "CHANGELOG.md does not have 0.3",
		"0.4.0":      "put ## [0.4.0] - YYYY-MM-DD above what is new",
		"0.2.1":      "says nothing of 0.2.1",
		"0.2.0":      "write ## [0.2.0] - YYYY-MM-DD",
		"0.1.1":      `ends in "- 2026-02-30"`,
		"0.1.0":      "[YANKED]",
		"Unreleased": `ends in ""`,
	} {
		if text, err := section(changelog, number); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v, want an error with %q", number, text, err, want)
		}
	}
	if _, err := section("nothing", "0.2.0"); err == nil || !strings.Contains(err.Error(), "no version at all") {
		t.Error(err)
	}
}

// Each version of the changelog can be released.
func TestOurChangelogCanBeRead(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range heading.FindAllStringSubmatch(string(text), -1) {
		if found[1] == "Unreleased" {
			continue
		}
		if err := checkVersion("v" + found[1]); err != nil {
			t.Error(err)
		}
		if _, err := section(string(text), found[1]); err != nil {
			t.Error(err)
		}
	}
}
