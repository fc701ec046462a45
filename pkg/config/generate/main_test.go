package main

import (
	"os"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/test/harness"
)

// And each option has a description.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	files := harness.Must(generated("../../.."))(t)
	for path, want := range files {
		if is, err := os.ReadFile(path); err != nil || string(is) != want {
			t.Errorf("%s is not what pkg/config says (%v): run `make options`", path, err)
		}
	}
	explained := harness.Must(readComments(".."))(t)
	for _, e := range config.Entries() {
		if len(explained.of(e.Fields)) == 0 || e.Possible == "" {
			t.Errorf("%s (%s) has no comment, or no values", e.Key, strings.Join(e.Fields, "."))
		}
	}
}
