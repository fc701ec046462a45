// Package events decides which operations become Kubernetes Events, with what text, how often. It is pure.
package events

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/text"
)

// Kubernetes' types of Events.
const (
	Normal  = "Normal"
	Warning = "Warning"
)

// Reasons of Events.
const (
	Slow   = "CNISlow"
	Failed = "CNIFailed"
	Hung   = "CNIHung"
)

// maxNote is events.k8s.io/v1's bound in bytes.
const maxNote = 1024

// Notice is an Event's content.
type Notice struct {
	Namespace, Pod, UID string
	Type, Reason        string
	Action              string
	// IfName and Cause distinguish a pod's operations; Cause also groups a node's.
	IfName, Cause string
	// Note has certain facts only, none about other pods.
	Note string
	Time time.Time
}

// Of returns the notice of a slow or failed operation, if its pod is known.
func Of(line control.Line) (n Notice, ok bool) {
	if line.Namespace == "" || line.Pod == "" || line.PodUID == "" {
		return Notice{}, false
	}
	n = Notice{
		Namespace: line.Namespace, Pod: line.Pod, UID: line.PodUID, Type: Warning,
		Action: line.Command, IfName: line.IfName, Cause: line.Cause, Time: line.Time,
	}
	happened := line.Call()
	switch took := text.Round(line.Duration); line.Result {
	case control.Slow:
		n.Type, n.Reason = Normal, Slow
		happened += fmt.Sprintf(" took %s", took)
	case control.Failed:
		n.Reason = Failed
		happened += " failed"
		if took > 0 { // a plugin ran
			happened += fmt.Sprintf(" after %s", took)
		}
	case control.Hung:
		n.Reason = Hung
		happened += fmt.Sprintf(" is not over after %s", took)
	default:
		return Notice{}, false
	}
	n.Note = cut(happened+why(line), maxNote)
	return n, true
}

func why(line control.Line) string {
	line = own(line)
	says := line.Verdict
	switch {
	case line.Result == control.Failed && says == "":
		says = line.Error
	case !line.Certain && line.Result != control.Failed:
		says = "the cause is uncertain; kubectl cniscope why names the candidates"
	}
	if says == "" {
		return ""
	}
	// The total in "4.9s of 5.1s: waiting" is already in the note.
	return ": " + strings.Replace(says, " of "+text.Round(line.Duration).String()+": ", ": ", 1)
}

// own removes facts about other pods, since readers of a pod's Events see the note: the cause stays, names go.
func own(line control.Line) control.Line {
	if !line.Foreign {
		return line
	}
	line.Verdict, line.Error = line.Own, ""
	if line.Verdict == "" && line.Cause != "" {
		line.Verdict = "cause " + line.Cause +
			", by or because of another pod: its name and what it did are for cniscope's operators"
	}
	return line
}

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
