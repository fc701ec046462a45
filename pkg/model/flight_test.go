package model

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

// A run polls for a path until a try is overdue, unless the command that tried last succeeded.
func TestAPolledPath(t *testing.T) {
	const ms = int64(1e6)
	run := func(code uint32) *Image {
		missing := &Missing{&event.Missing{Process: "mkdir", Path: "/run/lock", Error: "EEXIST", Count: 4}}
		return &Image{
			Facts: []*Fact{{When: Interval{Start: 0, End: 900 * ms}, What: missing}},
			Children: []*Image{{
				Program: Program{Process: "mkdir"}, Exit: Exit{Ended: true, Code: code}, Start: 895 * ms, End: 905 * ms,
			}},
		}
	}
	for name, test := range map[string]struct {
		code  uint32
		at    int64
		polls string
	}{"before the next try": {1, 1000, "/run/lock"}, "later": {1, 2000, ""}, "coping": {0, 1000, ""}} {
		harness.Equal(t, run(test.code).Polls(test.at*ms), test.polls, name, "polls for")
	}
}
