package onwindows

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Apply does what was planned, or nothing: what was done is undone if anything fails, up to and including the
// start of the service. So it is when ctx ends meanwhile; what is undone is undone to its end.
func (p *Plan) Apply(ctx context.Context, n Node) (err error) {
	whole := context.WithoutCancel(ctx)
	ran, err := n.Stop(whole, name) // its program cannot be replaced while it runs
	if err != nil {
		return fmt.Errorf("stopping the service: %w; nothing was changed", err)
	}
	done := 0
	defer func() {
		if err == nil {
			return
		}
		failed := p.undo(whole, n, done)
		if ran {
			failed = errors.Join(failed, n.Start(whole, name))
		}
		if failed != nil {
			err = fmt.Errorf("%w; undoing it failed, too: %w", err, failed)
			return
		}
		err = fmt.Errorf("%w; everything is as it was before", err)
	}()
	for _, c := range p.changes {
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted: %w", ctx.Err())
		}
		now, err := n.Read(c.Thing)
		if err == nil && !same(now, c.before) {
			err = errors.New("somebody else has just changed it: try again")
		}
		if err == nil {
			done++ // half of it, if it fails
			err = n.Write(c.Thing, c.after)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.Thing, err)
		}
	}
	if p.starts {
		if err := n.Start(ctx, name); err != nil {
			return fmt.Errorf("starting the service: %w", err)
		}
	}
	return nil
}

// undo brings back what the first changes replaced. A service that was started meanwhile is stopped first.
func (p *Plan) undo(ctx context.Context, n Node, done int) (err error) {
	if _, stopped := n.Stop(ctx, name); stopped != nil {
		err = stopped
	}
	for _, c := range slices.Backward(p.changes[:done]) {
		if failed := n.Write(c.Thing, c.before); failed != nil {
			err = errors.Join(err, fmt.Errorf("bringing %s back: %w", c.Thing, failed))
		}
	}
	return err
}
