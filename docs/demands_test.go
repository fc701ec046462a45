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

var testName = regexp.MustCompile("`(Test[A-Z]\\w+)`")

// tests are the names of all tests of the tree.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	for _, root := range []string{"../pkg", "../plugin", "../test", "../examples", "../configs"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, found := range declared.FindAllStringSubmatch(string(text), -1) {
				all[found[1]] = true
			}
			return err
		})
		harness.Check(t, err)
	}
	return all
}

// Each of the reports has a test that is there, or a section that says why there is none.
func TestEachDemandHasATestOrAReason(t *testing.T) {
	text, _ := read(t, "demands.md")
	known := tests(t)
	for _, found := range testName.FindAllStringSubmatch(text, -1) {
		if !known[found[1]] {
			t.Errorf("demands.md: there is no test %s", found[1])
		}
	}
	rows := 0
	for line := range strings.Lines(text) {
		columns := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| [") || len(columns) != 4 {
			continue
		}
		rows++
		if !testName.MatchString(columns[3]) && !strings.Contains(columns[2], "[below](#") {
			t.Errorf("demands.md: neither a test nor a reason: %s", columns[0])
		}
	}
	harness.Equal(t, rows, 12, "demands.md reports")
}
