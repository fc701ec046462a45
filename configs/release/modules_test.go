package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLicensesAreThoseOfTheTopFolder(t *testing.T) {
	apache, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"LICENSE.txt":     string(apache),
		"NOTICE":          "Made by somebody.",
		"COPYING":         "Do what you like with it, and do not tell me.",
		"license_test.go": "package x // LICENSE",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "licenses"), 0o755); err != nil {
		t.Fatal(err)
	}
	ids, texts, err := licenses(dir)
	if err != nil || !slices.Equal(ids, []string{"Apache-2.0"}) || len(texts) != 3 {
		t.Errorf("%v, %d texts, %v", ids, len(texts), err)
	}
	both := thirdParty(map[string]*module{"b": {Version: "v2", Texts: []string{"MIT"}}, "a": {Version: "v1", Texts: []string{"MIT", "PATENTS"}}})
	line := strings.Repeat("=", 80)
	if want := "\n" + line + "\na v1\n\nPATENTS\n\n" + line + "\na v1\nb v2\n\nMIT\n"; !strings.HasSuffix(both, want) {
		t.Errorf("%q, want %q", both, want)
	}
}

func TestPurl(t *testing.T) {
	for _, c := range [][3]string{
		{"github.com/cespare/xxhash/v2", "v2.3.0", "pkg:golang/github.com/cespare/xxhash/v2@v2.3.0"},
		{"stdlib", "1.26.8", "pkg:golang/stdlib@1.26.8"},
		{"github.com/a/b", "v2.0.0+incompatible", "pkg:golang/github.com/a/b@v2.0.0%2Bincompatible"},
	} {
		if got := purl(c[0], c[1]); got != c[2] {
			t.Errorf("%s, want %s", got, c[2])
		}
	}
}
