package onwindows

import (
	"errors"
	"fmt"
	"slices"
)

// Apply does what was planned, or nothing: what was done is undone if anything fails, up to and including the
// start of the service.
func (p *Plan) Apply(n Node) (err error) {
	ran, err := n.Stop(name) // its program cannot be replaced while it runs
	if err != nil {
		return fmt.Errorf("stopping the service: %w; nothing was changed", err)
	}
	done := 0
	defer func() {
		if err == nil {
			return
		}
		failed := p.undo(n, done)
		if ran {
			failed = errors.Join(failed, n.Start(name))
		}
		if failed != nil {
			err = fmt.Errorf("%w; undoing it failed, too: %w", err, failed)
			return
		}
		err = fmt.Errorf("%w; everything is as it was before", err)
	}()
	for _, c := range p.changes {
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
		if err := n.Start(name); err != nil {
			return fmt.Errorf("starting the service: %w", err)
		}
	}
	return nil
}

// undo brings back what the first changes replaced. A service that was started meanwhile is stopped first.
func (p *Plan) undo(n Node, done int) (err error) {
	if _, stopped := n.Stop(name); stopped != nil {
		err = stopped
	}
	for _, c := range slices.Backward(p.changes[:done]) {
		if failed := n.Write(c.Thing, c.before); failed != nil {
			err = errors.Join(err, fmt.Errorf("bringing %s back: %w", c.Thing, failed))
		}
	}
	return err
}
