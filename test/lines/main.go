// Command lines counts the lines of the repository: the product (Go outside test/ and tests, and the BPF programs' C),
// its tables of data, and tests with their support. Generated files are not counted. A table of data is a literal without
// functions of more than tableLines lines.
package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// tableLines is where a literal becomes a table of data: more than fits on a screen.
const tableLines = 60

type count struct{ lines, code, files int }

type counts map[string]count

func (c counts) add(group string, n count) {
	sum := c[group]
	c[group] = count{sum.lines + n.lines, sum.code + n.code, sum.files + n.files}
}

func (c counts) print() {
	names := slices.SortedFunc(maps.Keys(c), func(a, b string) int { return cmp.Compare(c[b].lines, c[a].lines) })
	for _, name := range names {
		fmt.Printf("%8d %8d %6d  %s\n", c[name].lines, c[name].code, c[name].files, name)
	}
}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func main() {
	each := flag.Bool("packages", false, "also print the product's lines of each folder")
	flag.Parse()
	groups, folders := counts{}, counts{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch extension := filepath.Ext(path); {
		case err != nil:
			return err
		case d.IsDir() && elsewhere(path):
			return filepath.SkipDir
		case d.IsDir() || extension != ".go" && extension != ".c" && extension != ".h":
			return nil
		}
		return file(path, groups, folders)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%8s %8s %6s\n", "lines", "code", "files")
	groups.print()
	if *each {
		fmt.Println()
		folders.print()
	}
}

func elsewhere(path string) bool {
	name := filepath.Base(path)
	return len(name) > 1 && name[0] == '.' || name == "node_modules" || path == "test/tools/bin"
}

func file(path string, groups, folders counts) error {
	text, err := os.ReadFile(path)
	if err != nil || generated.Match(text) || filepath.Base(path) == "vmlinux.h" {
		return err
	}
	all := count{bytes.Count(text, []byte("\n")), codeLines(text), 1}
	switch {
	case strings.HasPrefix(path, "test/"), strings.HasSuffix(path, "_test.go"), strings.Contains(path, "/testdata/"):
		groups.add("tests and their support", all)
	case filepath.Ext(path) != ".go":
		groups.add("product C", all)
	default:
		table := tables(text)
		groups.add("product Go", count{all.lines - table, all.code - table, 1})
		groups.add("product tables of data", count{table, table, 0})
		folders.add(filepath.Dir(path), all)
	}
	return nil
}

// codeLines returns how many lines have a token that is not a comment. C is near enough to Go for the scanner.
func codeLines(text []byte) int {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, func(token.Position, string) {}, 0)
	lines := map[int]bool{}
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			return len(lines)
		}
		if kind == token.SEMICOLON && literal == "\n" {
			continue
		}
		first := file.Line(pos)
		for n := range 1 + strings.Count(literal, "\n") {
			lines[first+n] = true
		}
	}
}

func tables(text []byte) int {
	files, sum := token.NewFileSet(), 0
	file, err := parser.ParseFile(files, "", text, parser.SkipObjectResolution)
	if err != nil {
		return 0
	}
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		if lines := files.Position(literal.End()).Line - files.Position(literal.Pos()).Line; lines > tableLines && !hasFunction(literal) {
			sum += lines + 1
		}
		return false
	})
	return sum
}

// hasFunction tells whether a literal holds a function: then it is code.
func hasFunction(literal *ast.CompositeLit) bool {
	found := false
	ast.Inspect(literal, func(n ast.Node) bool {
		_, isFunction := n.(*ast.FuncLit)
		found = found || isFunction
		return !found
	})
	return found
}
