//go:build linux

package cnis

import (
	"fmt"
	"regexp"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/spans"
)

type call struct{ spans.Call }

func (c *call) cause() string   { return c.Attrs["cniscope.cause"] }
func (c *call) verdict() string { return c.Attrs["cniscope.verdict"] }
func (c *call) remedy() string  { return c.Attrs["cniscope.remedy"] }

func (c *call) String() string {
	return fmt.Sprintf("%s, %.0f ms, %s: %s (%s)", c.Attrs["k8s.pod.name"], c.Took(), c.cause(), c.verdict(), c.remedy())
}

func (n *node) call(pod string) *call {
	n.Helper()
	found := &call{spans.Wait(n, n.spans, "ADD", "k8s.pod.name", pod)}
	n.Logf("%s", found)
	return found
}

func (n *node) says(c *call, cause, verdict, remedy string) {
	n.Helper()
	for what, pair := range map[string][2]string{
		"cause": {"^(" + cause + ")$", c.cause()}, "verdict": {verdict, c.verdict()}, "remedy": {remedy, c.remedy()},
	} {
		if !regexp.MustCompile(pair[0]).MatchString(pair[1]) {
			n.Errorf("%s: the %s is %q, want %s", c.Attrs["k8s.pod.name"], what, pair[1], pair[0])
		}
	}
}

func (n *node) ordinary(c *call) {
	n.Helper()
	if c.Took() > 1000 {
		n.Logf("%s: an ordinary call took %.0f ms", c.Attrs["k8s.pod.name"], c.Took())
		return
	}
	harness.Equal(n, c.verdict(), "", "of an ordinary call it is said", c)
}
