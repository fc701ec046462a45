package active

import (
	"path"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// NewImage returns what a process runs from now on; plugin: it is a CNI plugin, or a delegate.
func NewImage(now int64, e *event.Exec, plugin bool) *model.Image {
	im := &model.Image{
		Program: model.Program{
			PID: e.PID, ParentPID: e.ParentPID, Process: e.Process, Parent: e.Parent,
			File: e.File, Name: e.Name, Args: e.Args, Hidden: e.Hidden, NetNS: e.NetNS, Build: e.Build,
			InFlight: e.InFlight, Unidentified: e.Unidentified, Truncated: e.Truncated,
		},
		Start: now, End: now,
	}
	if plugin {
		im.Run = &model.Run{Plugin: path.Base(e.File), Command: e.Call.Command}
	}
	return im
}

// ended ends an image whose process had used before as much as said.
func ended(im *model.Image, now int64, before, used event.Usage) {
	im.Ended = true
	im.End = max(now, im.Start)
	im.CPU = max(0, used.CPU-before.CPU)
	im.RunDelay = max(0, used.RunDelay-before.RunDelay)
}

func exited(im *model.Image, now int64, before event.Usage, e *event.Exit) {
	ended(im, now, before, e.Used)
	im.Code, im.Signal, im.Unseen = e.Code, e.Signal, e.Unseen
	if e.NetNS.Key != "" && e.NetNS != im.NetNS && im.NetNS.Key != "" {
		im.Switched = e.NetNS
	}
}

// Within puts a time into that of an image, which may have begun later.
func Within(im *model.Image, start, end int64) model.Interval {
	end = max(end, im.Start)
	return model.Interval{Start: min(max(start, im.Start), end), End: end}
}
