package access

import (
	"fmt"

	"github.com/cniscope/cniscope/pkg/control"
)

// Document is the answer to "operations" (docs/fleet.md).
type Document struct {
	Schema string `json:"schema"`
	// Namespace is the only visible one; empty for an operator.
	Namespace string `json:"namespace,omitempty"`
	control.Operations
}

// Operations returns the visible operations.
func (v Viewer) Operations(all control.Operations) Document {
	d := Document{Schema: "cniscope.dev/operations/v1", Operations: all}
	if v.Operator {
		return d
	}
	d.Namespace = v.Namespace
	d.Operations.Operations = make([]control.Line, 0, len(all.Operations))
	for _, line := range all.Operations {
		if v.Sees(line.Namespace) {
			d.Operations.Operations = append(d.Operations.Operations, Own(line))
		}
	}
	return d
}

// Own returns a line without facts about other pods: the cause stays, names go.
func Own(line control.Line) control.Line {
	if !line.Foreign {
		return line
	}
	line.Verdict, line.Own, line.Remedy, line.Error = line.Own, "", "", ""
	if line.Verdict == "" && line.Cause != "" {
		line.Verdict = fmt.Sprintf("cause %s, by or because of another pod: its name and what it did are for cniscope's operators", line.Cause)
	}
	return line
}
