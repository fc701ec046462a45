package main

import (
	"os"
	"path/filepath"
	"slices"
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
	if got, err := licenses(dir); err != nil || !slices.Equal(got, []string{"Apache-2.0"}) {
		t.Errorf("%v, %v", got, err)
	}
}

// Scanners know a module by its purl.
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
