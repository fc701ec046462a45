package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// noticesFile holds the licenses of linked modules, which must accompany the program.
func (r *release) noticesFile() string { return filepath.Join(r.Work, "THIRD-PARTY-NOTICES.txt") }

// notices also stores the modules for the SBOM.
func notices(ctx context.Context, r *release) (err error) {
	if r.modules, r.goVersion, err = r.linked(ctx, r.programsBuilt()); err != nil {
		return err
	}
	return r.notice(r.noticesFile(), r.modules)
}

func (r *release) notice(file string, modules map[string]*module) error {
	words, err := os.ReadFile(filepath.Join(r.Root, "pkg/redact/words.LICENSE"))
	if err != nil {
		return err
	}
	all := maps.Clone(modules)
	maps.DeleteFunc(all, func(_ string, m *module) bool { return m.Sum == "" }) // cniscope itself
	all["SCOWL, a list of words"] = &module{Texts: []string{strings.TrimSpace(string(words))}}
	if gos := all["golang.org/x/sys"]; gos != nil {
		all["Go's standard library"] = &module{Version: r.goVersion, Texts: gos.Texts}
	}
	return os.WriteFile(file, []byte(thirdParty(all)), 0o644)
}

func thirdParty(modules map[string]*module) string {
	owners := map[string][]string{}
	for path, m := range modules {
		for _, text := range m.Texts {
			owners[text] = append(owners[text], strings.TrimSpace(path+" "+m.Version))
		}
	}
	var parts []string
	for text, who := range owners {
		slices.Sort(who)
		parts = append(parts, strings.Join(slices.Compact(who), "\n")+"\n\n"+text)
	}
	slices.Sort(parts)
	var b strings.Builder
	b.WriteString("cniscope contains the following, each under the license below it.\n")
	for _, part := range parts {
		fmt.Fprintf(&b, "\n%s\n%s\n", strings.Repeat("=", 80), part)
	}
	return b.String()
}
