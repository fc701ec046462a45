package timeline

import (
	"github.com/cniscope/cniscope/pkg/model"
)

// outlive marks what still runs below a run that is over. It never holds a call open.
func outlive(run *model.Image) {
	run.Walk(func(im *model.Image) {
		if !im.Ended {
			im.Outlived = true
		}
	})
}

// settle gives an end to what has none. What is still under way lasts until now; what
// outlived its run is followed no further than the run.
func settle(im *model.Image, now int64) {
	if !im.Ended && !im.Outlived {
		im.End = max(im.End, now)
	}
	for _, child := range im.Children {
		settle(child, now)
		if child.Outlived && !child.Ended {
			child.End = max(child.Start, im.End)
		}
	}
	for w := range im.Works() {
		settle(w.Own, now)
		settle(w.Shared, now)
	}
}
