//go:build !windows

package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestASpoolElsewhereIsNotedForThePurge(t *testing.T) {
	for _, c := range []struct{ spool, baseline, want string }{
		{"", "", ""},
		{"/var/lib/cniscope/spool", "/var/lib/cniscope", ""},
		{"/srv/spool/", "/srv/spool", "/srv/spool\n"},
		{"/var/lib/cniscope-2", "/srv/learned", "/var/lib/cniscope-2\n/srv/learned\n"},
	} {
		root := t.TempDir()
		if err := noteElsewhere(root, c.spool, c.baseline); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if got, _ := os.ReadFile(filepath.Join(root, "var/lib/cniscope/spool-elsewhere")); string(got) != c.want {
			t.Errorf("%+v: noted %q", c, got)
		}
	}
	for _, dir := range []string{"spool", "/srv/a\nb"} {
		if noteElsewhere(t.TempDir(), dir) == nil {
			t.Errorf("%q was noted", dir)
		}
	}
}
