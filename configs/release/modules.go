package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

type module struct {
	Path, Version string
	Sum           string // checksum as in go.sum, "h1:…"
	Licenses      []string
	Texts         []string
	Uses          []string // imported modules
}

type built struct{ file, of, goos, goarch string }

func (r *release) programsBuilt() (all []built) {
	for _, arch := range architectures {
		for _, of := range shipped {
			all = append(all, built{filepath.Join(filepath.Dir(r.program(arch)), filepath.Base(of)), of, "linux", arch})
		}
	}
	return all
}

// linked returns the modules in programs by path, from build information; go list provides imports.
func (r *release) linked(ctx context.Context, programs []built) (modules map[string]*module, goVersion string,
	err error,
) {
	modules = map[string]*module{}
	for _, p := range programs {
		info, err := buildinfo.ReadFile(p.file)
		if err != nil {
			return nil, "", err
		}
		goVersion = info.GoVersion
		modules[info.Main.Path] = &module{Path: info.Main.Path, Version: r.Version}
		for _, dep := range info.Deps {
			if dep.Replace != nil {
				dep = dep.Replace
			}
			modules[dep.Path] = &module{Path: dep.Path, Version: dep.Version, Sum: dep.Sum}
		}
	}
	for _, p := range programs {
		if err := r.look(ctx, modules, p); err != nil {
			return nil, "", err
		}
	}
	return modules, goVersion, nil
}

type listed struct {
	ImportPath string
	Imports    []string
	Standard   bool
	Module     *struct {
		Path, Dir string
		Replace   *struct{ Path, Dir string }
	}
}

func (r *release) look(ctx context.Context, modules map[string]*module, program built) error {
	text, err := r.command(ctx, r.environment("GOOS="+program.goos, "GOARCH="+program.goarch), "go", "list", "-deps",
		"-json=ImportPath,Imports,Standard,Module", program.of)
	if err != nil {
		return err
	}
	var packages []listed
	owner := map[string]*module{}
	for decoder := json.NewDecoder(strings.NewReader(text)); ; {
		var p listed
		if err := decoder.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return fmt.Errorf("go list: %w", err)
		}
		packages = append(packages, p)
		if p.Standard || p.Module == nil {
			continue
		}
		path, dir := p.Module.Path, p.Module.Dir
		if p.Module.Replace != nil {
			path, dir = p.Module.Replace.Path, p.Module.Replace.Dir
		}
		m := modules[path]
		if m == nil {
			return fmt.Errorf("%s is compiled, but %s does not name its module %s", p.ImportPath, program.file, path)
		}
		owner[p.ImportPath] = m
		if m.Licenses == nil {
			if m.Licenses, m.Texts, err = licenses(dir); err != nil {
				return err
			}
		}
	}
	for _, p := range packages {
		user := owner[p.ImportPath]
		for _, path := range p.Imports {
			if used := owner[path]; user != nil && used != nil && used != user {
				user.Uses = append(user.Uses, used.Path)
			}
		}
		if user != nil {
			slices.Sort(user.Uses)
			user.Uses = slices.Compact(user.Uses)
		}
	}
	return nil
}

var (
	licenseFile = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying)([.-].*)?$`)
	noticeFile  = regexp.MustCompile(`(?i)^(notice|patents|copyright)([.-].*)?$`)
)

// licenses returns SPDX identifiers, and the texts of licenses and notices. A text with less than 75 % known content
// has no identifier.
func licenses(dir string) (ids, texts []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	ids = []string{}
	for _, e := range entries {
		license := licenseFile.MatchString(e.Name())
		if e.IsDir() || !license && !noticeFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, nil, err
		}
		texts = append(texts, strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
		if cover := licensecheck.Scan(text); license && cover.Percent >= 75 {
			for _, m := range cover.Match {
				ids = append(ids, m.ID)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), texts, nil
}
