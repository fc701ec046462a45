//go:build !windows

package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestASpoolElsewhereIsNotedForThePurge(t *testing.T) {
	for dir, want := range map[string]string{
		"": "", "/var/lib/cniscope/spool": "", "/var/lib/cniscope": "",
		"/srv/spool/": "/srv/spool\n", "/var/lib/cniscope-2": "/var/lib/cniscope-2\n",
	} {
		root := t.TempDir()
		if err := noteSpool(root, dir); err != nil {
			t.Errorf("%q: %v", dir, err)
		}
		if got, _ := os.ReadFile(filepath.Join(root, "var/lib/cniscope/spool-elsewhere")); string(got) != want {
			t.Errorf("%q: noted %q, want %q", dir, got, want)
		}
	}
	for _, dir := range []string{"spool", "/srv/a\nb"} {
		if noteSpool(t.TempDir(), dir) == nil {
			t.Errorf("%q was noted", dir)
		}
	}
}
