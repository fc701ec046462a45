package main

import (
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func TestTheListIsValid(t *testing.T) {
	if _, err := parse(list); err != nil {
		t.Error(err)
	}
	if _, err := parse("short pkg/spool TestX"); err == nil {
		t.Error("a line without a reason is valid")
	}
	if _, err := parse("sometimes pkg/spool TestX flaky"); err == nil {
		t.Error("a line without a condition is valid")
	}
}

func TestWhatIsNotListedIsFound(t *testing.T) {
	allowed, err := parse("any pkg/a Test(One|Two) no reason\nown pkg/a TestThree/.* no reason")
	harness.Check(t, err)
	skipped, err := read(strings.NewReader(`
{"Action":"output","Package":"` + module + `pkg/a","Test":"TestThree/sub","Output":"=== RUN   TestThree/sub\n"}
{"Action":"output","Package":"` + module + `pkg/a","Test":"TestThree/sub","Output":"    a_test.go:7: not here\n"}
{"Action":"output","Package":"` + module + `pkg/a","Test":"TestThree/sub","Output":"    --- SKIP: TestThree/sub (0.00s)\n"}
{"Action":"skip","Package":"` + module + `pkg/a","Test":"TestThree/sub","Elapsed":0}
{"Action":"skip","Package":"` + module + `pkg/a","Test":"TestOne"}
{"Action":"skip","Package":"` + module + `pkg/b","Test":"TestOne"}
{"Action":"pass","Package":"` + module + `pkg/a","Test":"TestFour"}
{"Action":"skip","Package":"` + module + `pkg/without-tests"}
`))
	harness.Check(t, err)
	for condition, want := range map[string][]string{"own": {"pkg/b TestOne"}, "short": {"pkg/a TestThree/sub a_test.go:7: not here", "pkg/b TestOne"}} {
		var unlisted []string
		for _, s := range skipped {
			if !allowed.allow(s, []string{"any", condition}) {
				unlisted = append(unlisted, strings.TrimSpace(s.Package+" "+s.Test+" "+s.reason))
			}
		}
		harness.EqualSlices(t, unlisted, want, condition)
	}
}
