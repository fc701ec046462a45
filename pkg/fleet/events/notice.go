// Package events decides which operations become Kubernetes Events, what these say, and how many are written: a
// node writes ten times a minute at most, whatever happens to its pods. It is pure; who calls it talks to the API.
package events

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet/access"
	"github.com/cniscope/cniscope/pkg/text"
)

// The types of Events. They are Kubernetes' own.
const (
	Normal  = "Normal"
	Warning = "Warning"
)

// The reasons of Events.
const (
	Slow   = "CNISlow"
	Failed = "CNIFailed"
	Hung   = "CNIHung"
)

// maxNote is how long the note of an Event may be, in bytes (validation of events.k8s.io/v1).
const maxNote = 1024

// Notice is what a pod is told about one of its operations.
type Notice struct {
	Namespace, Pod, UID string
	Type, Reason        string
	// Action is the CNI command.
	Action string
	// IfName and Cause tell operations of one pod apart; Cause also groups those of a node.
	IfName, Cause string
	// Note says what happened: no more than is certain, and nothing of other pods.
	Note string
	Time time.Time
}

// Of returns what a pod is to be told of an operation; ok is false if that is nothing: the operation was
// ordinary, or whose it was is not known.
func Of(line control.Line) (n Notice, ok bool) {
	if line.Namespace == "" || line.Pod == "" || line.PodUID == "" {
		return Notice{}, false
	}
	n = Notice{
		Namespace: line.Namespace, Pod: line.Pod, UID: line.PodUID, Type: Warning,
		Action: line.Command, IfName: line.IfName, Cause: line.Cause, Time: line.Time,
	}
	happened := strings.TrimSpace("CNI " + line.Command + " " + line.IfName)
	switch took := text.Round(line.Duration); line.Result {
	case control.Slow:
		n.Type, n.Reason = Normal, Slow
		happened += fmt.Sprintf(" took %s", took)
	case control.Failed:
		n.Reason = Failed
		happened += fmt.Sprintf(" failed after %s", took)
	case control.Hung:
		n.Reason = Hung
		happened += fmt.Sprintf(" is not over after %s", took)
	default:
		return Notice{}, false
	}
	n.Note = cut(happened+why(line), maxNote)
	return n, true
}

// why is the verdict, behind what happened.
func why(line control.Line) string {
	own := access.Own(line)
	says := own.Verdict
	switch {
	case line.Result == control.Failed && says == "":
		says = own.Error
	case !line.Certain && line.Result != control.Failed:
		says = "what it was lost to is not certain; kubectl cniscope why tells what it may have been"
	}
	if says == "" {
		return ""
	}
	// "4.9s of 5.1s waiting": how long the call took is said already.
	return ": " + strings.Replace(says, " of "+text.Round(line.Duration).String()+" ", " ", 1)
}

// cut shortens s to n bytes, of whole letters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const more = "…"
	s = s[:n-len(more)]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + more
}
