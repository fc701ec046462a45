package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// documents lists every Markdown file of the project, but for what tools brought along.
func documents(t *testing.T) (all []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "bin" || name == "dist" || name == "testdata" || len(name) > 2 && name[0] == '.') {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			all = append(all, path)
		}
		return nil
	})
	harness.Check(t, err)
	return all
}

var (
	link    = regexp.MustCompile(`\]\(([^)]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
)

// anchors are what a document's headings are called in links, as GitHub makes them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		name := link.ReplaceAllString(m[1], "]")
		name = regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.ToLower(name), "")
		all[strings.ReplaceAll(name, " ", "-")] = true
	}
	return all
}

// A link within the project leads to a file that exists, and in it to a heading.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, document := range documents(t) {
		text, _ := read(t, document)
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := document
			if file != "" {
				target = filepath.Join(filepath.Dir(document), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", document, m[1], err)
				continue
			}
			if anchor == "" {
				continue
			}
			if there, _ := read(t, target); !anchors(there)[anchor] {
				t.Errorf("%s links to %s, which has no such heading", document, m[1])
			}
		}
	}
}

// Every document can be found from the index: users' from README.md, contributors' from CONTRIBUTING.md.
func TestTheIndexIsComplete(t *testing.T) {
	for index, pattern := range map[string]string{"README.md": "*.md", "../CONTRIBUTING.md": "contributing/*.md"} {
		text, _ := read(t, index)
		documents, _ := filepath.Glob(pattern)
		for _, document := range documents {
			if document != "README.md" && !strings.Contains(text, "]("+document+")") && !strings.Contains(text, "](docs/"+document+")") {
				t.Errorf("%s does not lead to %s", index, document)
			}
		}
	}
}

// The first page is read in five minutes: it is short, and says how to test under a heading of its own.
func TestTheFirstPageIsShort(t *testing.T) {
	text, lines := read(t, "../README.md")
	if len(lines) > 120 {
		t.Errorf("README.md has %d lines, 120 at most", len(lines))
	}
	if !strings.Contains(text, "\n## Test it\n\n    make test\n") {
		t.Error("README.md does not say how to run the tests, under \"Test it\"")
	}
}
