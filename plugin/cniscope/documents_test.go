package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// document returns the text of a file of the project.
func document(t *testing.T, path string) string {
	t.Helper()
	return string(harness.Must(os.ReadFile(filepath.Join("../..", path)))(t))
}

// generated compares each part of a document that a pattern matches with what is to be there; make golden writes it.
func generated(t *testing.T, path string, part *regexp.Regexp, want func(part []string) string) {
	t.Helper()
	text := document(t, path)
	now := part.ReplaceAllStringFunc(text, func(was string) string { return want(part.FindStringSubmatch(was)) })
	switch {
	case !part.MatchString(text):
		t.Errorf("%s has nothing that is generated", path)
	case now == text:
	case !*update:
		t.Errorf("%s is not what the program gives: make golden\n%s", path, firstDifference(now, text))
	default:
		harness.Check(t, os.WriteFile(filepath.Join("../..", path), []byte(now), 0o644))
	}
}

// guides are what users read: their commands must be those of this program, and their targets the Makefile's.
func guides(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"README.md", "CONTRIBUTING.md", "docs/*.md", "docs/contributing/*.md", "docs/cni/*.md", "examples/*/README.md"} {
		found, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		for _, path := range found {
			all = append(all, strings.TrimPrefix(filepath.ToSlash(path), "../../"))
		}
	}
	return all
}

// A command line that a document shows has a subcommand and flags that there are.
func TestDocumentsShowCommandsThatThereAre(t *testing.T) {
	line := regexp.MustCompile("(?m)(?:^    (?:sudo )?(?:\\./|bin/)?|^    go run \\./plugin/|`(?:sudo )?)(cniscope [a-z][^`\\n]*)")
	checked := 0
	for _, path := range guides(t) {
		for _, m := range line.FindAllStringSubmatch(document(t, path), -1) {
			text, _, _ := strings.Cut(m[1], "#")
			words := strings.Fields(text)[1:]
			cmd, rest, err := rootCmd().Find(words)
			if err != nil || cmd == cmd.Root() {
				t.Errorf("%s: %s: %v", path, m[1], err)
				continue
			}
			checked++
			for _, word := range rest {
				name, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
				if strings.HasPrefix(word, "--") && cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil && name != "help" && name != "version" {
					t.Errorf("%s: %s: there is no flag %s", path, m[1], word)
				}
			}
		}
	}
	if checked < 40 {
		t.Errorf("only %d commands were found", checked)
	}
}

// A target that a document names is one that `make help` lists.
func TestDocumentsNameTargetsThatThereAre(t *testing.T) {
	makefiles := document(t, "Makefile")
	for _, pattern := range []string{"*/*.mk", "*/*/*.mk", "*/*/*/*.mk"} {
		found := harness.Must(filepath.Glob(filepath.Join("../..", pattern)))(t)
		for _, path := range found {
			makefiles += document(t, strings.TrimPrefix(path, "../../"))
		}
	}
	for _, path := range guides(t) {
		for _, m := range regexp.MustCompile("(?m)(?:^    (?:sudo )?|`)make (?:-[a-z]\\d* )?([a-z][a-z-]*)").FindAllStringSubmatch(document(t, path), -1) {
			if !regexp.MustCompile(`(?m)^` + m[1] + `[ \w-]*:.*## `).MatchString(makefiles) {
				t.Errorf("%s: there is no make %s", path, m[1])
			}
		}
	}
}

// The waterfall on the first page is what the command above it draws, shortened.
func TestTheFirstPageShowsWhatIsDrawn(t *testing.T) {
	t.Setenv("COLUMNS", "")
	drawn, _, err := cniscope(t, "show", "--color", "never", threePods)
	harness.Check(t, err)
	picture := regexp.MustCompile("(?s)```\n(.*?)```").FindStringSubmatch(document(t, "README.md"))
	if picture == nil {
		t.Fatal("README.md draws nothing")
	}
	for line := range strings.Lines(picture[1]) {
		if !strings.Contains(drawn, line) {
			t.Errorf("not drawn: %s", line)
		}
	}
}

// What commands of docs/tutorial.md print is below them; make golden writes it.
func TestGoldenTutorial(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	t.Setenv("COLUMNS", "")
	part := regexp.MustCompile("(?s)(    bin/cniscope (show [^\n|]*)(\\| head -(\\d))?\n\n<!-- generated: its output -->\n```\n).*?(```\n<!-- end -->)")
	generated(t, "docs/tutorial.md", part, func(part []string) string {
		drawn, _, err := cniscope(t, strings.Fields(strings.ReplaceAll(part[2], "examples/", "../../examples/"))...)
		harness.Check(t, err)
		lines := slices.Collect(strings.Lines(drawn))
		if most, err := strconv.Atoi(part[4]); err == nil {
			lines = lines[:most]
		}
		return part[1] + strings.Join(lines, "") + part[5]
	})
}
