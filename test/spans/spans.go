// Package spans reads what cniscope wrote by [export.file], for the tests that hold it against what happened.
package spans

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/scope"
)

// Span is one span. Attrs are its attributes and those of its resource, as a person would read them.
type Span struct {
	Name, TraceID, SpanID, ParentSpanID string
	StartTimeUnixNano, EndTimeUnixNano  string
	Status                              struct {
		Code    int
		Message string
	}
	Attributes []Attribute
	Events     []Event
	Links      []struct {
		TraceID, SpanID string
		Attributes      []Attribute
	}

	Attrs map[string]string `json:"-"`
	Raw   string            `json:"-"`
}

// Event is an event of a span.
type Event struct {
	Name       string
	Attributes []Attribute
}

// Attribute is one attribute as OTLP JSON has it.
type Attribute struct {
	Key   string
	Value map[string]json.RawMessage
}

// Texts returns attributes by their keys.
func Texts(attributes []Attribute) map[string]string {
	m := map[string]string{}
	for _, a := range attributes {
		for kind, raw := range a.Value {
			var text string
			if kind != "stringValue" || json.Unmarshal(raw, &text) != nil {
				text = strings.Trim(string(raw), `"`)
			}
			m[a.Key] = text
		}
	}
	return m
}

// Ms is an attribute in milliseconds.
func (x *Span) Ms(key string) float64 {
	f, _ := strconv.ParseFloat(x.Attrs[key], 64)
	return f
}

// Start is in nanoseconds since 1970.
func (x *Span) Start() int64 { return nanoseconds(x.StartTimeUnixNano) }

// End is in nanoseconds since 1970.
func (x *Span) End() int64 { return nanoseconds(x.EndTimeUnixNano) }

// Took is in milliseconds.
func (x *Span) Took() float64 { return float64(x.End()-x.Start()) / 1e6 }

func nanoseconds(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// Read returns the spans of a file and of its rotated file, without a last line that is not whole yet.
func Read(path string) (all []*Span, err error) {
	written, err := scope.ReadSpans(path)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(written) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var request struct {
			ResourceSpans []struct {
				Resource   struct{ Attributes []Attribute }
				ScopeSpans []struct{ Spans []json.RawMessage }
			}
		}
		if err := json.Unmarshal(line, &request); err != nil {
			return nil, err
		}
		for _, rs := range request.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				for _, raw := range ss.Spans {
					x := &Span{Raw: string(raw)}
					if err := json.Unmarshal(raw, x); err != nil {
						return nil, err
					}
					x.Attrs = Texts(slices.Concat(rs.Resource.Attributes, x.Attributes)) // the pod is on the resource
					all = append(all, x)
				}
			}
		}
	}
	return all, nil
}

// Call is the span of a CNI call, and all spans of the file.
type Call struct {
	*Span
	All []*Span
}

// Wait waits for the call on eth0 of the pod, or of what else has an attribute of that value; or on lo, if the chain
// did not begin.
func Wait(t testing.TB, path, command, key, value string) (found Call) {
	t.Helper()
	harness.Eventually(t, func() error {
		all, err := Read(path)
		if err != nil {
			return err
		}
		for _, x := range all {
			if x.Name == "CNI "+command && x.Attrs[key] == value && (x.Attrs["cni.ifname"] == "eth0" || strings.HasSuffix(x.Status.Message, " did not run")) {
				found = Call{x, all}
				return nil
			}
		}
		return fmt.Errorf("no CNI %s of %s among %d spans", command, value, len(all))
	})
	return found
}

// Below lists what is under the call, of these kinds.
func (c Call) Below(kinds ...string) (found []*Span) {
	in := map[string]bool{c.SpanID: true}
	for _, x := range c.All { // parents come before children
		if in[x.ParentSpanID] {
			in[x.SpanID] = true
			if slices.Contains(kinds, x.Attrs["cniscope.kind"]) {
				found = append(found, x)
			}
		}
	}
	return found
}
