// Command lines counts the lines of the repository: the product (Go outside test/ and tests, and the BPF programs' C),
// its tables of data, and tests with their support. Generated files are not counted. A table of data is a literal without
// functions of more than tableLines lines.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

// tableLines is where a literal becomes a table of data: more than fits on a screen.
const tableLines = 60

// count is what a group of files has: lines in all, and of these, lines with code.
type count struct{ lines, code, files int }

func (c *count) add(o count) { c.lines += o.lines; c.code += o.code; c.files += o.files }

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func main() {
	each := flag.Bool("packages", false, "also print the product's lines of each folder")
	flag.Parse()
	groups, folders := map[string]*count{}, map[string]*count{}
	add := func(in map[string]*count, key string, c count) {
		if in[key] == nil {
			in[key] = &count{}
		}
		in[key].add(c)
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name != "." && strings.HasPrefix(name, ".") || name == "node_modules" || path == "test/tools/bin" {
				return filepath.SkipDir
			}
			return nil
		}
		extension := filepath.Ext(path)
		if extension != ".go" && extension != ".c" && extension != ".h" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || generated.Match(text) || filepath.Base(path) == "vmlinux.h" {
			return err
		}
		isTest := strings.HasPrefix(path, "test/") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testdata/")
		all := count{bytes.Count(text, []byte("\n")), codeLines(text), 1}
		switch {
		case isTest:
			add(groups, "tests and their support", all)
		case extension != ".go":
			add(groups, "product C", all)
		default:
			table := tables(text)
			add(groups, "product Go", count{all.lines - table, all.code - table, 1})
			add(groups, "product tables of data", count{table, table, 0})
			add(folders, filepath.Dir(path), all)
		}
		return nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%8s %8s %6s\n", "lines", "code", "files")
	write := func(in map[string]*count) {
		names := make([]string, 0, len(in))
		for name := range in {
			names = append(names, name)
		}
		sort.Slice(names, func(i, j int) bool { return in[names[i]].lines > in[names[j]].lines })
		for _, name := range names {
			fmt.Printf("%8d %8d %6d  %s\n", in[name].lines, in[name].code, in[name].files, name)
		}
	}
	write(groups)
	if *each {
		fmt.Println()
		write(folders)
	}
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

// tables returns how many lines of a file are tables of data.
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
