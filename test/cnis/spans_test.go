//go:build linux

package cnis

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cniscope/cniscope/test/harness"
)

// span is one span of cniscope's file, with attributes as text.
type span struct {
	Name, SpanID, ParentSpanID         string
	StartTimeUnixNano, EndTimeUnixNano string
	Attributes                         []attribute
	attrs                              map[string]string
}

type attribute struct {
	Key   string
	Value map[string]json.RawMessage
}

func (x *span) took() float64 {
	start, _ := strconv.ParseInt(x.StartTimeUnixNano, 10, 64)
	end, _ := strconv.ParseInt(x.EndTimeUnixNano, 10, 64)
	return float64(end-start) / 1e6
}

type call struct {
	*span
	all []*span
}

func (c *call) cause() string   { return c.attrs["cniscope.cause"] }
func (c *call) verdict() string { return c.attrs["cniscope.verdict"] }
func (c *call) remedy() string  { return c.attrs["cniscope.remedy"] }

func (c *call) String() string {
	return fmt.Sprintf("%s, %.0f ms, %s: %s (%s)", c.attrs["k8s.pod.name"], c.took(), c.cause(), c.verdict(), c.remedy())
}

// call waits for a pod's ADD on eth0.
func (n *node) call(pod string) (found *call) {
	n.Helper()
	harness.Eventually(n, func() error {
		all, err := readSpans(n.spans)
		if err != nil {
			return err
		}
		for _, x := range all {
			if x.Name == "CNI ADD" && x.attrs["k8s.pod.name"] == pod && x.attrs["cni.ifname"] == "eth0" {
				found = &call{span: x, all: all}
				return nil
			}
		}
		return fmt.Errorf("no CNI ADD of %s among %d spans", pod, len(all))
	})
	n.Logf("%s", found)
	return found
}

func (c *call) below(kinds ...string) (found []*span) {
	in := map[string]bool{c.SpanID: true}
	for _, x := range c.all { // parents precede children
		if in[x.ParentSpanID] {
			in[x.SpanID] = true
			if slices.Contains(kinds, x.attrs["cniscope.kind"]) {
				found = append(found, x)
			}
		}
	}
	return found
}

// says expects the verdict's cause, sentence and remedy.
func (n *node) says(c *call, cause, verdict, remedy string) {
	n.Helper()
	for what, pair := range map[string][2]string{
		"cause": {"^(" + cause + ")$", c.cause()}, "verdict": {verdict, c.verdict()}, "remedy": {remedy, c.remedy()},
	} {
		if !regexp.MustCompile(pair[0]).MatchString(pair[1]) {
			n.Errorf("%s: the %s is %q, want %s", c.attrs["k8s.pod.name"], what, pair[1], pair[0])
		}
	}
}

// ordinary expects a call without losses.
func (n *node) ordinary(c *call) {
	n.Helper()
	if c.took() > 1000 {
		n.Logf("%s: an ordinary call took %.0f ms", c.attrs["k8s.pod.name"], c.took())
		return
	}
	harness.Equal(n, c.verdict(), "", "of an ordinary call it is said", c)
}

func readSpans(path string) (all []*span, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return all, nil
		}
		var request struct {
			ResourceSpans []struct {
				Resource   struct{ Attributes []attribute }
				ScopeSpans []struct{ Spans []*span }
			}
		}
		if err := json.Unmarshal(line, &request); err != nil {
			return nil, err
		}
		for _, rs := range request.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				for _, x := range ss.Spans {
					x.attrs = map[string]string{}
					for _, a := range slices.Concat(rs.Resource.Attributes, x.Attributes) { // the pod is on the resource
						x.attrs[a.Key] = text(a.Value)
					}
					all = append(all, x)
				}
			}
		}
	}
}

func text(value map[string]json.RawMessage) string {
	for kind, raw := range value {
		var s string
		if kind == "stringValue" && json.Unmarshal(raw, &s) == nil {
			return s
		}
		return strings.Trim(string(raw), `"`)
	}
	return ""
}
