package doctor

import (
	"context"
	"time"

	"github.com/cniscope/cniscope/pkg/doctor/gather"
	"github.com/cniscope/cniscope/pkg/event"
)

const lookWithin = 250 * time.Millisecond

// LookAt finds what a failed call needed.
func LookAt(ctx context.Context, o Options, w event.Want) *event.Found {
	o = withDefaults(o)
	o.Patience = lookWithin
	ctx, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	return gather.Found(ctx, o, w)
}
