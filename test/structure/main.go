// Command structure measures the product's packages: calls between files against the main direction, and large files,
// functions, parameter lists, lines and packages. The main direction of a package is the order of its files with the
// fewest backward calls.
//
// It exits with 1 if a package exceeds test/structure/ledger.txt; -update lowers the ledger.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// The limits. A registry with one file for each rule may have those files in addition.
const (
	maxBack       = 15 // percent of the calls between files
	minCalls      = 20 // below it, a percentage means nothing
	maxFileLines  = 400
	maxFiles      = 30
	maxParameters = 6
	maxFunction   = 80 // lines
	maxLine       = 120
	registryFiles = "rule_"
)

type pkg struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
}

// call is a use of a function of another file of the package, by file names.
type call struct{ from, to string }

func main() {
	update := flag.Bool("update", false, "lower the ledger to what is found")
	arrows := flag.String("arrows", "", "list the calls that run back in the package of this folder")
	flag.Parse()
	found, err := measure(*arrows)
	if err == nil {
		err = hold(found, *update)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// measure prints a line for each package, and returns counts such as "pkg/x functions" → 2.
func measure(arrows string) (map[string]int, error) {
	packages, exports, err := list()
	if err != nil {
		return nil, err
	}
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	found := map[string]int{}
	fmt.Printf("%6s %6s %6s  %s\n", "files", "calls", "back", "package")
	for _, p := range packages {
		fset := token.NewFileSet()
		files, err := parse(fset, p, found)
		if err != nil {
			return nil, err
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
		config := types.Config{Importer: importer.ForCompiler(fset, "gc", open)}
		checked, err := config.Check(p.ImportPath, fset, files, info)
		if err != nil {
			return nil, err
		}
		calls := callsOf(fset, checked, info)
		order := direct(calls)
		all, back := 0, 0
		for c, n := range calls {
			all += n
			if order[c.from] > order[c.to] {
				back += n
				if p.Dir == arrows {
					fmt.Printf("%20d  %s -> %s\n", n, c.from, c.to)
				}
			}
		}
		percent := 100 * back / max(1, all)
		if all >= minCalls && percent > maxBack {
			found[p.Dir+" percent back"] = percent
		}
		fmt.Printf("%6d %6d %5d%%  %s\n", len(files), all, percent, p.Dir)
	}
	return found, nil
}

func list() (packages []pkg, exports map[string]string, err error) {
	out, err := exec.Command("go", "list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles", "./pkg/...", "./plugin/...", "./configs/...").Output()
	if err != nil {
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("go list: %s", failed.Stderr)
		}
		return nil, nil, err
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, nil, err
	}
	exports = map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p pkg
		if err := decoder.Decode(&p); err != nil {
			return nil, nil, err
		}
		exports[p.ImportPath] = p.Export
		if dir, err := filepath.Rel(here, p.Dir); err == nil && filepath.IsLocal(dir) {
			p.Dir = dir
			packages = append(packages, p)
		}
	}
	slices.SortFunc(packages, func(a, b pkg) int { return strings.Compare(a.Dir, b.Dir) })
	return packages, exports, nil
}

// parse returns the files of a package, and adds the counts of too large parts to found. Generated files do not
// count.
func parse(fset *token.FileSet, p pkg, found map[string]int) (files []*ast.File, err error) {
	own := 0
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
		if ast.IsGenerated(file) {
			continue
		}
		if !strings.HasPrefix(name, registryFiles) {
			own++
		}
		judge(fset, file, text, func(what string) { found[p.Dir+" "+what]++ })
	}
	if own > maxFiles {
		found[p.Dir+" files in a package"] = own
	}
	return files, nil
}

// judge calls add for each too large part of a file.
func judge(fset *token.FileSet, file *ast.File, text []byte, add func(what string)) {
	if bytes.Count(text, []byte("\n")) > maxFileLines {
		add("long files")
	}
	for line := range bytes.Lines(text) {
		if utf8.RuneCount(bytes.TrimSuffix(line, []byte("\n"))) > maxLine {
			add("long lines")
		}
	}
	for _, declaration := range file.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if f.Type.Params.NumFields() > maxParameters {
			add("functions with many parameters")
		}
		if fset.Position(f.End()).Line-fset.Position(f.Pos()).Line >= maxFunction {
			add("long functions")
		}
	}
}

func callsOf(fset *token.FileSet, checked *types.Package, info *types.Info) map[call]int {
	calls := map[call]int{}
	for use, object := range info.Uses {
		function, ok := object.(*types.Func)
		if !ok || function.Pkg() != checked {
			continue
		}
		c := call{filepath.Base(fset.Position(use.Pos()).Filename), filepath.Base(fset.Position(function.Pos()).Filename)}
		if c.from != c.to {
			calls[c]++
		}
	}
	return calls
}

// direct is the heuristic of Eades, Lin and Smyth for the feedback arc set (Information Processing
// Letters 47, 1993), improved by moving single files.
func direct(calls map[call]int) map[string]int {
	names := map[string]bool{}
	for c := range calls {
		names[c.from], names[c.to] = true, true
	}
	var order []string
	for len(names) > 0 {
		var best string
		most := 0
		for i, name := range slices.Sorted(maps.Keys(names)) {
			balance := 0
			for c, n := range calls {
				if c.from == name && names[c.to] {
					balance += n
				} else if c.to == name && names[c.from] {
					balance -= n
				}
			}
			if i == 0 || balance > most {
				best, most = name, balance
			}
		}
		order = append(order, best)
		delete(names, best)
	}
	for improved := true; improved; {
		improved = false
		for i := range order {
			improved = settle(order, i, calls) || improved
		}
	}
	places := map[string]int{}
	for i, name := range order {
		places[name] = i
	}
	return places
}

func settle(order []string, i int, calls map[call]int) bool {
	name, at, gain, best := order[i], i, 0, 0
	for _, step := range []int{-1, 1} {
		gain = 0
		for j := i + step; j >= 0 && j < len(order); j += step {
			gain += step * (calls[call{order[j], name}] - calls[call{name, order[j]}])
			if gain > best {
				at, best = j, gain
			}
		}
	}
	copy(order, slices.Insert(slices.Delete(slices.Clone(order), i, i+1), at, name))
	return at != i
}

const ledger = "test/structure/ledger.txt"

// hold compares the counts with the ledger, whose counts may only fall.
func hold(found map[string]int, update bool) error {
	data, err := os.ReadFile(ledger)
	if err != nil {
		return err
	}
	var lowered, worse bytes.Buffer
	limits := map[string]int{}
	for scanner := bufio.NewScanner(bytes.NewReader(data)); scanner.Scan(); {
		line := scanner.Text()
		if strings.HasPrefix(line, "#") {
			fmt.Fprintln(&lowered, line)
			continue
		}
		var limit int
		if _, err := fmt.Sscan(line, &limit); err != nil {
			return fmt.Errorf("%s: %q: %w", ledger, line, err)
		}
		_, area, _ := strings.Cut(line, " ")
		limits[area] = limit
	}
	for _, area := range slices.Sorted(maps.Keys(found)) {
		n, limit := found[area], limits[area]
		if n > limit {
			fmt.Fprintf(&worse, "%s: %d, %d allowed\n", area, n, limit)
		}
		if n = min(n, limit); n > 0 {
			fmt.Fprintf(&lowered, "%d %s\n", n, area)
		}
	}
	if update {
		return errors.Join(os.WriteFile(ledger, lowered.Bytes(), 0o644), complain(worse.String()))
	}
	return complain(worse.String())
}

func complain(worse string) error {
	if worse == "" {
		return nil
	}
	return fmt.Errorf("larger or more entangled than %s allows; `go run ./test/structure -arrows FOLDER` lists the calls that run back:\n%s", ledger, worse)
}
