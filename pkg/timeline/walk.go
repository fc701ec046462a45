package timeline

// Walk calls f for im and everything below it, parents first; what agents did for it comes last.
func (im *Image) Walk(f func(*Image)) {
	f(im)
	im.walkBelow(f)
}

func (im *Image) walkBelow(f func(*Image)) {
	for _, child := range im.Children {
		child.Walk(f)
	}
	im.works(func(w *Work) {
		w.Own.walkBelow(f)
		w.Shared.walkBelow(f)
	})
}

func (im *Image) works(f func(*Work)) {
	for _, fact := range im.Facts {
		if c, is := fact.What.(*Connection); is && c.Work != nil {
			f(c.Work)
		}
	}
}

// outlive marks what still runs below a run that is over. It never holds a call open.
func (im *Image) outlive() {
	im.Walk(func(im *Image) {
		if !im.Ended {
			im.Outlived = true
		}
	})
}

// settle gives an end to what has none. What is still under way lasts until now; what
// outlived its run is followed no further than the run.
func (im *Image) settle(now int64) {
	if !im.Ended && !im.Outlived {
		im.End = max(im.End, now)
	}
	for _, child := range im.Children {
		child.settle(now)
		if child.Outlived && !child.Ended {
			child.End = max(child.Start, im.End)
		}
	}
	im.works(func(w *Work) {
		w.Own.settle(now)
		w.Shared.settle(now)
	})
}

// eachImage calls f for every image of op, and for those that stand for the work of agents, also
// of those that agents call.
func (op *Operation) eachImage(f func(*Image)) {
	for _, call := range op.Calls {
		for _, run := range call.Runs {
			run.each(f)
		}
	}
}

func (im *Image) each(f func(*Image)) {
	f(im)
	for _, child := range im.Children {
		child.each(f)
	}
	im.works(func(w *Work) {
		w.Own.each(f)
		w.Shared.each(f)
	})
}
