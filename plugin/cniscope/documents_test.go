package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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

// What runs as root speaks to no Kubernetes API, so no client of one is in it.
func TestNoClientOfTheKubernetesAPIIsLinked(t *testing.T) {
	out := harness.Must(exec.Command("go", "list", "-deps", ".").Output())(t)
	if !strings.Contains(string(out), "github.com/cniscope/cniscope/pkg/control") {
		t.Fatalf("these are not cniscope's packages:\n%s", out)
	}
	for pkg := range strings.Lines(string(out)) {
		for _, client := range []string{"k8s.io/client-go", "k8s.io/apimachinery", "k8s.io/api/"} {
			if strings.HasPrefix(pkg, client) {
				t.Errorf("cniscope links %s", pkg)
			}
		}
	}
}
