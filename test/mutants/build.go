package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// All mutants within functions are compiled at once: a function begins with a copy of itself for
// each, selected by the environment. A mutant outside a function has its own build.

const chooser = `package %s

import (
	"os"
	"strconv"
	"sync"
)

var (
	mutantChosen, _ = strconv.Atoi(os.Getenv("MUTANT"))
	mutantsReached  sync.Map
)

func mutantAt(id int) bool {
	if mutantChosen == 0 {
		if _, known := mutantsReached.LoadOrStore(id, true); !known {
			if f, err := os.OpenFile(os.Getenv("MUTANTS_REACHED"), os.O_APPEND|os.O_WRONLY, 0); err == nil {
				f.WriteString(strconv.Itoa(id) + "\n")
				f.Close()
			}
		}
	}
	return id == mutantChosen
}
`

func (r *runner) compiling(pools []*pool) error {
	id := 0
	for _, p := range pools {
		for _, m := range p.mutants {
			id++
			m.id = id
		}
	}
	for _, p := range pools {
		for {
			p.mutants = slices.DeleteFunc(p.mutants, func(m *mutant) bool { return m.stillborn })
			drawn := p.mutants[:min(p.quota, len(p.mutants))]
			broken, err := r.check(p.folder, drawn)
			if err != nil {
				return err
			}
			if !broken {
				p.mutants = drawn
				break
			}
		}
		for _, m := range p.mutants {
			if m.body.to > 0 {
				r.together = append(r.together, m)
			}
		}
	}
	var err error
	r.overlaid, err = r.overlay(r.together)
	return err
}

func (r *runner) check(folder string, drawn []*mutant) (broken bool, err error) {
	builds := [][]*mutant{nil}
	for _, m := range drawn {
		if m.body.to > 0 {
			builds[0] = append(builds[0], m)
		} else {
			builds = append(builds, []*mutant{m})
		}
	}
	for i, mutants := range builds {
		overlay, err := r.overlay(mutants)
		if err != nil {
			return false, err
		}
		out, failed := exec.Command("go", "build", "-gcflags=-e", "-overlay", overlay, "./"+folder).CombinedOutput()
		if failed == nil {
			continue
		}
		marked := false
		for _, m := range mutants {
			if m.stillborn = i > 0 || bytes.Contains(out, fmt.Appendf(nil, "mutant%d:", m.id)); m.stillborn {
				marked = true
			}
		}
		if broken = true; !marked {
			return false, fmt.Errorf("%s does not compile: %w\n%s", folder, failed, out)
		}
	}
	return broken, nil
}

func (r *runner) overlay(mutants []*mutant) (string, error) {
	dir, err := os.MkdirTemp(r.dir, "overlay")
	if err != nil {
		return "", err
	}
	files, replace := map[string][]*mutant{}, map[string]string{}
	for _, m := range mutants {
		files[m.file] = append(files[m.file], m)
	}
	number := 0
	write := func(instead string, text []byte) error {
		path, err := filepath.Abs(instead)
		number++
		replace[path] = filepath.Join(dir, fmt.Sprint(number, ".go"))
		return errors.Join(err, os.WriteFile(replace[path], text, 0o600))
	}
	for file, of := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		slices.SortFunc(of, func(a, b *mutant) int { return b.body.from - a.body.from })
		for _, m := range of {
			src = m.apply(src)
		}
		if err := write(file, src); err != nil {
			return "", err
		}
		name := string(regexp.MustCompile(`(?m)^package (\w+)`).FindSubmatch(src)[1])
		if err := write(filepath.Join(filepath.Dir(file), "mutants_chosen.go"), fmt.Appendf(nil, chooser, name)); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// apply returns a file with the mutant, selectable if it is within a function.
func (m *mutant) apply(src []byte) []byte {
	if m.body.to == 0 {
		return slices.Concat(src[:m.from], []byte(m.with), src[m.to:])
	}
	guard := fmt.Sprintf("if mutantAt(%d) { /*line mutant%d:1:1*/ ", m.id, m.id)
	return slices.Concat(src[:m.body.from], []byte(guard), []byte(m.body.text[:m.from-m.body.from]), []byte(m.with),
		[]byte(m.body.text[m.to-m.body.from:]), []byte("\n"+m.body.end+"\n}\n"), src[m.body.from:])
}

func list(format, folder string, more ...string) ([]string, error) {
	out, err := exec.Command("go", append(append([]string{"list", "-f", format}, more...), "./"+folder)...).Output()
	if err != nil {
		err = fmt.Errorf("go list %s: %w", folder, err)
	}
	return strings.Fields(string(out)), err
}
