package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func TestWhatIsMutated(t *testing.T) {
	for body, want := range map[string]string{
		`if a < 3 { f() }`:             `early; drop; < <=; 3 4; negate; drop`,
		`if a == b || ok { return }`:   `early; drop; || &&; == !=; negate; drop`,
		`a++`:                          `early; drop; ++ --`,
		`x := make([]int, 2, 64)`:      `early; 2 3`,
		`x := make(chan int, 64)`:      `early`,
		`log.Warn("retrying", "n", 3)`: `early`,
		`return`:                       `early; drop`,
		`switch { case a > b: f() }`:   `early; > >=; negate; drop`,
		`var x [4]int`:                 `early`,
		`a = 64 * .5`:                  `early; drop; * /; 64 32; .5 (.5/2)`,
		`a, ok = 0, true`:              `early; drop; 0 1; true false`,
	} {
		file := filepath.Join(t.TempDir(), "x.go")
		harness.Check(t, os.WriteFile(file, []byte("package x\n\nfunc _() {\n"+body+"\n}\n"), 0o600))
		all, err := mutantsOf(file)
		harness.Check(t, err)
		var got []string
		for _, m := range all {
			switch {
			case m.old == "":
				got = append(got, "early")
			case m.with == "":
				got = append(got, "drop")
			case strings.HasPrefix(m.with, "!("):
				got = append(got, "negate")
			default:
				got = append(got, fmt.Sprint(m.old, " ", m.with))
			}
		}
		wanted := strings.Split(want, "; ")
		slices.Sort(got)
		slices.Sort(wanted)
		harness.EqualSlices(t, got, wanted, body)
	}
}

func TestAMutantIsChosen(t *testing.T) {
	src := "package x\n\nfunc f(a int) int { return a + 1 }\n"
	file := filepath.Join(t.TempDir(), "x.go")
	harness.Check(t, os.WriteFile(file, []byte(src), 0o600))
	all, err := mutantsOf(file)
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	m := all[slices.IndexFunc(all, func(m *mutant) bool { return m.with == "-" })]
	m.id = 7
	want := "package x\n\nfunc f(a int) int {if mutantAt(7) { /*line mutant7:1:1*/  return a - 1 \n\n}\n return a + 1 }\n"
	harness.Equal(t, string(m.apply([]byte(src))), want)
}

// The file that each package gets uses what it imports: no mutant compiles beside one that does not.
func TestTheChooserUsesItsImports(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "chooser.go", fmt.Sprintf(chooser, "p"), 0)
	harness.Check(t, err)
	used := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, is := n.(*ast.SelectorExpr); is {
			used[fmt.Sprintf("%q", s.X)] = true
		}
		return true
	})
	for _, i := range file.Imports {
		harness.Equal(t, used[i.Path.Value], true, i.Path.Value)
	}
}
