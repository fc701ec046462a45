package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/show"
	"github.com/cniscope/cniscope/test/harness"
)

// A recording does not differ from itself.
func TestDiffOfTheSame(t *testing.T) {
	out, _, err := cniscope(t, "diff", threePods, threePods)
	if err != nil || strings.Count(out, "no significant change") != 4 || strings.Count(out, "\n") != 4 {
		t.Errorf("%v\n%s", err, out)
	}
}

// One pod is not enough to tell what is slower, however it looks; what is new is new.
func TestDiffOfTwoPods(t *testing.T) {
	read := func(args ...string) (c show.Comparison) {
		t.Helper()
		out, _, err := cniscope(t, append([]string{"diff", "--format", "json"}, args...)...)
		harness.Check(t, err)
		harness.Check(t, json.Unmarshal([]byte(out), &c))
		return c
	}
	whole := read(threePods, threePods)
	if len(whole.Kinds) != 4 || whole.Kinds[0].Name != "CNI ADD eth0" || whole.Kinds[0].A.Calls != 3 {
		t.Errorf("%+v", whole)
	}
	one := read(threePods, threePods, "--pod", "slow-0")
	if one.Kinds[0].A.Calls != 1 || one.Kinds[0].Word != show.Same {
		t.Errorf("%+v", one.Kinds[0])
	}
}
