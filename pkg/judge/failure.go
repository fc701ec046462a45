package judge

import (
	"fmt"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/text"
	"github.com/cniscope/cniscope/pkg/timeline"
)

// Fails tells whether a run fails its call. Whoever called it for an ADD reads what it
// wrote: what is no JSON is as good as nothing.
func Fails(run *timeline.Image) bool {
	if run.Failed() {
		return true
	}
	r := result(run)
	return r != nil && r.Invalid != "" && run.Run.Command == "ADD"
}

// Describe says how an image ended badly, and what it said itself about that.
func Describe(im *timeline.Image) string {
	name := im.Name
	if im.Run != nil {
		name = im.Run.Plugin
	}
	said := fmt.Sprintf("%s exited %d", name, im.Code)
	if im.Signal != "" {
		said = fmt.Sprintf("%s killed by %s after %s", name, im.Signal, text.Round(time.Duration(im.End-im.Start)))
	}
	r := result(im)
	if r == nil {
		return said
	}
	switch {
	case r.Invalid != "" && !im.Failed():
		return fmt.Sprintf("%s wrote %s", name, r.Invalid)
	case r.Code != 0 && r.Message != "":
		said += fmt.Sprintf(": code %d: \"%s\"", r.Code, r.Message)
	case r.Code != 0:
		said += fmt.Sprintf(": code %d", r.Code)
	case r.Message != "":
		said += fmt.Sprintf(": \"%s\"", r.Message)
	case r.Invalid != "":
		said += ": wrote " + r.Invalid
	}
	return said
}

// result is what a run wrote; nil if that was not seen, or if it is no run.
func result(im *timeline.Image) *event.Result {
	if im.Run == nil {
		return nil
	}
	return im.Run.Result
}
