package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// unplain is what the program does not print: what sends whoever is paged away to think, and turns of
// phrase that are nobody's English.
var unplain = regexp.MustCompile(`(?i)\b(find out (why|what|who)|see (why|what|their|whether)|nobody's way|it is said\b|is said if|` +
	`to speak of|spoken|speaks? of|what is no chance|others at work|for want of|run again, it|or what a newer|never run\b|some ones?\b|` +
	`mostly lost to|take it out\b|is to be had|are to be had)`)

// allowed are strings that look so and are not printed, or are others' words.
var allowed = map[string]bool{
	"never run": true, // the value of error.type, which is an interface
}

// What the program prints reads as if a native speaker had written it: of each string in its source, at least
// what was found wanting once does not come back.
func TestWhatItPrintsIsPlain(t *testing.T) {
	for _, root := range []string{"../pkg", "../plugin", "../configs"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				lit, is := n.(*ast.BasicLit)
				if !is || lit.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(lit.Value)
				if err != nil || allowed[text] {
					return true
				}
				if found := unplain.FindString(text); found != "" {
					t.Errorf("%s: it prints %q: %s", files.Position(lit.Pos()), found, text)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
