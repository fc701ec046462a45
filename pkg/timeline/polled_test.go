package timeline

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

func (s *story) misses(start, end int64, process, path, errno string, count uint64) *story {
	return s.at(end, &event.Missing{Process: event.Process(process), Start: start * ms, Name: "openat", Path: path, Error: errno, Count: count})
}

// Reports of one path and error are one fact, of the process that polls; of a lock file, of the whole run.
func TestPolledFiles(t *testing.T) {
	stories{
		"reports of a file are one fact": {func(s *story) {
			s.misses(5, 100, "b", "/run/a", "ENOENT", 3).misses(5, 200, "b", "/run/a", "ENOENT", 7).misses(6, 150, "b", "/run/c", "ENOENT", 2)
		}, "bridge: /run/a ENOENT 5-200 7; bridge: /run/c ENOENT 6-150 2"},
		"another error is another fact": {func(s *story) {
			s.misses(5, 100, "b", "/run/a", "ENOENT", 3).misses(100, 200, "b", "/run/a", "EACCES", 7)
		}, "bridge: /run/a ENOENT 5-100 3; bridge: /run/a EACCES 100-200 7"},
		"a late report does not shorten it": {func(s *story) {
			s.misses(5, 200, "b", "/run/a", "ENOENT", 7).misses(5, 200, "b", "/run/a", "ENOENT", 8)
		}, "bridge: /run/a ENOENT 5-200 8"},
		"a command's file is the command's": {func(s *story) {
			s.command(10, "x", "b", "cat").misses(11, 100, "x", "/run/a", "ENOENT", 3).exit(110, "x")
		}, "cat: /run/a ENOENT 11-100 3"},
		"a lock file is the run's, whichever command tries": {func(s *story) {
			s.command(10, "x", "b", "mkdir").misses(11, 100, "x", "/run/a", "EEXIST", 3).exit(110, "x").
				command(120, "y", "b", "mkdir").misses(11, 200, "y", "/run/a", "EEXIST", 7).exit(210, "y")
		}, "bridge: /run/a EEXIST 11-200 7"},
		"of an agent's work it is the work's": {func(s *story) {
			s.calls(2, "b", "s1").command(10, "x", "a", "mkdir", mentions("c1")).misses(11, 100, "x", "/run/a", "EEXIST", 3).exit(110, "x")
		}, "mkdir: /run/a EEXIST 11-100 3"},
		"without room it is counted": {
			func(s *story) {
				for i := range 20 {
					s.misses(5, 100, "b", "/run/p"+strings.Repeat("/.", i), "ENOENT", 1)
				}
			},
			strings.Repeat("bridge: /run/p ENOENT 5-100 1; ", 16) + "4 cut",
		},
		"the state of a lock file is its call's": {func(s *story) {
			s.misses(5, 100, "b", "/run/a", "EEXIST", 3).misses(5, 100, "b", "/run/c", "ENOENT", 3).
				at(110, &event.LockFile{Path: "/run/a", Written: 1}).at(120, &event.LockFile{Path: "/run/a", Written: 2}).
				at(120, &event.LockFile{Path: "/run/c", Written: 3}).at(120, &event.LockFile{Path: "/run/d", Written: 4})
		}, "bridge: /run/a EEXIST 5-100 3; bridge: /run/c ENOENT 5-100 3; lock file /run/a of 2"},
	}.each(t, bridging, func(s *story) string {
		s.exit(500, "b").tick(20_000).end()
		var got, locks []string
		for _, op := range s.closed {
			everyImage(op, func(im *model.Image) {
				for f, m := range model.Each[*model.Missing](im.Facts) {
					got = append(got, fmt.Sprintf("%s: %s %s %d-%d %d", im.Name, path.Clean(m.Path), m.Error, f.When.Start/ms, f.When.End/ms, m.Count))
				}
			})
			for file, l := range op.Calls[0].LockFiles {
				locks = append(locks, fmt.Sprintf("lock file %s of %d", file, l.Written))
			}
			if cut := op.Calls[0].Cut["polled files"]; cut > 0 {
				locks = append(locks, fmt.Sprint(cut, " cut"))
			}
		}
		return strings.Join(append(got, locks...), "; ")
	})
}

// A call stores the state of eight lock files.
func TestLockFilesAreBounded(t *testing.T) {
	s := bridging(t)
	for i := range 10 {
		file := fmt.Sprint("/run/", i)
		s.misses(5, 100, "b", file, "EEXIST", 3).at(110, &event.LockFile{Path: file})
	}
	var kept []string
	for file := range s.exit(500, "b").tick(20_000).closed[0].Calls[0].LockFiles {
		kept = append(kept, file)
	}
	slices.Sort(kept)
	harness.Equal(t, strings.Join(kept, " "), "/run/0 /run/1 /run/2 /run/3 /run/4 /run/5 /run/6 /run/7")
}
