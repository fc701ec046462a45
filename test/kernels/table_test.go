package kernels

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

var update = flag.Bool("update", false, "write testdata/features.md")

const page = "testdata/features.md"

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

// compare fails if the page differs. The newest kernel may change.
func compare(t *testing.T, measured string) {
	t.Helper()
	was := harness.Must(os.ReadFile(page))(t)
	newest := regexp.MustCompile(`newest \([^)]*\)`)
	if *update {
		harness.Check(t, os.WriteFile(page, []byte(measured), 0o644))
		return
	}
	said := newest.ReplaceAllString(string(was), "newest")
	if said != newest.ReplaceAllString(measured, "newest") {
		t.Errorf("testdata/features.md says something else; after a change that is meant, run "+
			"go test ./test/kernels -update\nit says\n%s\nmeasured\n%s", said, measured)
	}
}
