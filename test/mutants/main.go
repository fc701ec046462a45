// Command mutants finds code that no test checks. It changes the source in small ways, runs the tests for each
// change, and prints the changes without a failing test.
//
//	mutants [-n 100] [-seed 20261125] [-enough 90] PACKAGE or FILE...
//	mutants -at pkg/judge/behind.go:175
//
// Each package has an equal share of the mutants, drawn by the seed. A mutant that does not compile does not count.
// The tests of the package run first, then those of its users, up to the first failure.
package main

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	n := flag.Int("n", 100, "how many mutants to try")
	seed := flag.Uint64("seed", 1, "by which they are drawn")
	enough := flag.Int("enough", 90, "how many of 100 must be killed")
	at := flag.String("at", "", "try all mutants of FILE:LINE instead")
	flag.Parse()
	share, err := run(*n, *seed, *at, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	if err != nil || share < *enough {
		os.Exit(1)
	}
}

// pool holds the mutants of a package or file, in the order of their runs.
type pool struct {
	name, folder string
	mutants      []*mutant
	quota        int
}

func run(n int, seed uint64, at string, names []string) (int, error) {
	file, line, _ := strings.Cut(at, ":")
	if at != "" {
		names = []string{file}
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	var pools []*pool
	for i, name := range names {
		p, err := draw(name, seed)
		if err != nil {
			return 0, err
		}
		p.quota = (n + len(names) - 1 - i) / len(names)
		if number, err := strconv.Atoi(line); err == nil {
			p.mutants = slices.DeleteFunc(p.mutants, func(m *mutant) bool { return m.line != number })
			p.quota = len(p.mutants)
		}
		pools = append(pools, p)
	}
	r := runner{dir: dir, bases: map[suite]*base{}}
	if err := r.compiling(pools); err != nil {
		return 0, err
	}
	var failed error // a package whose tests fail without a mutant must not stop the others
	tried, killed, table := 0, 0, ""
	for _, p := range pools {
		died := 0
		for _, m := range p.mutants {
			by, err := r.try(m, p.folder)
			if err != nil {
				failed = errors.Join(failed, err)
				break
			}
			if by != "" {
				died++
				fmt.Printf("killed    %s  (%s)\n", m, by)
			} else {
				fmt.Printf("SURVIVED  %s\n", m)
			}
		}
		tried, killed = tried+len(p.mutants), killed+died
		table += fmt.Sprintf("%-26s %4d of %4d killed\n", p.name, died, len(p.mutants))
	}
	fmt.Printf("\n%s%-26s %4d of %4d killed\n", table, "all", killed, tried)
	return 100 * killed / max(1, tried), failed
}

func draw(name string, seed uint64) (*pool, error) {
	p := &pool{name: filepath.Clean(name), folder: filepath.Clean(name)}
	files := []string{p.name}
	if filepath.Ext(name) == ".go" {
		p.folder = filepath.Dir(p.name)
	} else {
		var err error
		if files, err = list("{{range .GoFiles}}{{.}} {{end}}", p.folder); err != nil {
			return nil, err
		}
		for i := range files {
			files[i] = filepath.Join(p.folder, files[i])
		}
	}
	for _, file := range files {
		all, err := mutantsOf(file)
		if err != nil {
			return nil, err
		}
		p.mutants = append(p.mutants, all...)
	}
	h := fnv.New64a()
	h.Write([]byte(p.name))
	by := rand.New(rand.NewPCG(seed, h.Sum64()))
	by.Shuffle(len(p.mutants), func(i, j int) { p.mutants[i], p.mutants[j] = p.mutants[j], p.mutants[i] })
	return p, nil
}
