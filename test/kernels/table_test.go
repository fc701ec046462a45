package kernels

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of docs/contributing/kernels.md anew")

const page = "../../docs/contributing/kernels.md"

// table is the page's: a feature a line, a kernel a column.
func table(reports []reported) string {
	var b strings.Builder
	b.WriteString("| feature |")
	for _, r := range reports {
		if r.kernel.name == "newest" {
			fmt.Fprintf(&b, " newest (%s) |", r.release)
			continue
		}
		fmt.Fprintf(&b, " %s |", r.kernel.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(reports)) + "\n")
	for i, f := range reports[0].features {
		fmt.Fprintf(&b, "| %s |", f.Name)
		for _, r := range reports {
			mark := "–"
			if r.features[i].OK {
				mark = "✓"
			}
			fmt.Fprintf(&b, " %s |", mark)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// compare fails if the page says something else. Which kernel is the newest may change.
func compare(t *testing.T, measured string) {
	t.Helper()
	was, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	tables := regexp.MustCompile(`(?m)^\| feature .*\n(\|.*\n)+`)
	newest := regexp.MustCompile(`newest \([^)]*\)`)
	if *update {
		now := tables.ReplaceAllLiteral(was, []byte(measured))
		if err := os.WriteFile(page, now, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	said := newest.ReplaceAllString(string(tables.Find(was)), "newest")
	if said != newest.ReplaceAllString(measured, "newest") {
		t.Errorf("docs/contributing/kernels.md says something else; after a change that is meant, run "+
			"go test ./test/kernels -update\nit says\n%s\nmeasured\n%s", said, measured)
	}
}
