// Package docs holds the documents; its tests keep what they say about the tree true.
package docs

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

// read returns a document and its lines.
func read(t *testing.T, file string) (text string, lines []string) {
	t.Helper()
	data := harness.Must(os.ReadFile(file))(t)
	return string(data), strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

var quoted = regexp.MustCompile("`([^`]+)`")

// A row names files that exist, as many as it says, and nine at most.
func TestAChangeTouchesTheFilesThatTheTableNames(t *testing.T) {
	text, lines := read(t, "contributing/architecture.md")
	if len(lines) > 250 {
		t.Errorf("contributing/architecture.md has %d lines, 250 at most", len(lines))
	}
	_, table, _ := strings.Cut(text, "| change | before | now | files |\n|---|---|---|---|\n")
	rows := 0
	for line := range strings.Lines(table) {
		columns := strings.Split(line, " | ")
		if len(columns) < 4 {
			break
		}
		rows++
		files := quoted.FindAllStringSubmatch(columns[3], -1)
		if n, err := strconv.Atoi(columns[2]); err != nil || n != len(files) || n > 9 {
			t.Errorf("%s: it says %s, and names %d files", columns[0], columns[2], len(files))
		}
		for _, f := range files {
			if _, err := os.Stat(filepath.Join("..", f[1])); err != nil {
				t.Errorf("%s: %v", columns[0], err)
			}
		}
	}
	harness.Equal(t, rows, 9, "the table rows")
}

// Every package and every test folder has a place in contributing/architecture.md, and each path that a
// document names is there.
func TestPathsInDocumentsExist(t *testing.T) {
	architecture, _ := read(t, "contributing/architecture.md")
	for _, pattern := range []string{"../pkg/*", "../test/*"} {
		found, _ := filepath.Glob(pattern)
		for _, dir := range found {
			if info, err := os.Stat(dir); err != nil || !info.IsDir() {
				continue
			}
			if name := "`" + strings.TrimPrefix(dir, "../") + "/`"; !strings.Contains(architecture, name) {
				t.Errorf("contributing/architecture.md does not name %s", name)
			}
		}
	}
	path := regexp.MustCompile(`^(pkg|plugin|test|configs|examples|docs)/[\w./-]+$`)
	for _, document := range documents(t) {
		text, _ := read(t, document)
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			if path.MatchString(m[1]) {
				if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
					t.Errorf("%s names %s: %v", document, m[1], err)
				}
			}
		}
	}
}

// kubernetes.md names each of the chart's profiles.
func TestKubernetesNamesTheProfiles(t *testing.T) {
	text, _ := read(t, "kubernetes.md")
	_, table, _ := strings.Cut(text, "| `profile` | socket of the runtime | CNI directory | also |\n|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var named []string
	for line := range strings.Lines(table) {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		for _, m := range quoted.FindAllStringSubmatch(first, -1) {
			named = append(named, m[1])
		}
	}
	slices.Sort(named)
	var there []string
	files, _ := filepath.Glob("../configs/helm/cniscope/profiles/*.yaml")
	for _, file := range files {
		there = append(there, strings.TrimSuffix(filepath.Base(file), ".yaml"))
	}
	if !slices.Equal(named, there) {
		t.Errorf("kubernetes.md names %q, there are %q", named, there)
	}
}

// Documents name files of the newest release in CHANGELOG.md.
func TestDocumentsNameTheNewestRelease(t *testing.T) {
	changes, _ := read(t, "../CHANGELOG.md")
	newest := regexp.MustCompile(`(?m)^## \[(\d[^]]*)\]`).FindStringSubmatch(changes)[1]
	named := regexp.MustCompile(`(?:cniscope[-_]|VERSION=v|targetRevision: v?|--branch v)(\d+\.\d+\.\d+)`)
	found := 0
	for _, document := range documents(t) {
		text, _ := read(t, document)
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if found++; m[1] != newest {
				t.Errorf("%s names %s, and the newest release is %s", document, m[0], newest)
			}
		}
	}
	if found < 5 {
		t.Errorf("%d names found", found)
	}
}

// Each alert leads to its part of docs/alerts.md.
func TestEachAlertNamesItsRunbook(t *testing.T) {
	rules := string(harness.Must(os.ReadFile("../examples/prometheus/alerts.yaml"))(t))
	page := string(harness.Must(os.ReadFile("alerts.md"))(t))
	for _, rule := range strings.Split(rules, "- alert: ")[1:] {
		name, text, _ := strings.Cut(rule, "\n")
		if !strings.Contains(page, "\n## "+name+"\n") || !strings.Contains(text, "/docs/alerts.md#"+strings.ToLower(name)+"\n") {
			t.Errorf("%s has no runbook_url to its heading of alerts.md", name)
		}
	}
}
