package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const unit = "cniscope.service"

type services struct {
	plan      *Plan
	systemd   *systemd // nil without systemd
	wasActive bool     // the service ran before
	disturbed bool     // it was stopped or started
}

func (p *Plan) services(ctx context.Context) (*services, error) {
	s := &services{plan: p}
	if !p.tree.live() || !systemdRuns() {
		return s, nil
	}
	var err error
	if s.systemd, err = connectSystemd(ctx); err != nil {
		return nil, err
	}
	active, load, err := s.systemd.state(ctx, unit)
	s.wasActive = active == "active" || active == "activating" || active == "reloading"
	if err == nil && load == "masked" && p.service() {
		err = fmt.Errorf("%s is masked: run systemctl unmask %s first", unit, unit)
	}
	if err != nil {
		s.close()
	}
	return s, err
}

func (p *Plan) service() bool { return p.wish != nil && p.options.As == Service }

func (p *Plan) ofPackage() bool {
	return p.tree.packaged() && !p.touches(func(s Step) bool { return s.Path == unitFile })
}

func (p *Plan) disabled() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Path == enabledLink && s.Does == Keeps })
}

func (p *Plan) touches(match func(Step) bool) bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Does != Keeps && s.Does != Same && match(s) })
}

func ofSystemd(s Step) bool { return strings.HasPrefix(s.Path, "/etc/systemd/system/") }

func (s *services) close() {
	if s.systemd != nil {
		s.systemd.close()
	}
}

// before stops the service if it will not be one, except a package's.
func (s *services) before(ctx context.Context) error {
	if s.systemd == nil || !s.wasActive || s.plan.service() || s.plan.ofPackage() {
		return nil
	}
	s.disturbed = true
	return s.systemd.stop(ctx, unit)
}

func (s *services) after(ctx context.Context) (notes []string, err error) {
	p := s.plan
	if !p.tree.live() {
		return nil, nil
	}
	if s.systemd != nil {
		if err := s.start(ctx); err != nil {
			return nil, err
		}
	} else if p.service() && !p.ofPackage() {
		notes = append(notes, fmt.Sprintf("systemd does not run here: %s is installed, and starts when the node is booted "+
			"with systemd. To start cniscope without it:\n\n  %s run --config %s", unit, p.wish.program, optionsFile))
	}
	removed := func(s Step) bool { return s.Does == Removes && strings.HasSuffix(s.Path, "/"+pluginName) }
	if p.manifest != nil && p.touches(removed) {
		notes = append(notes, "the cniscope that containerd has started goes with the next restart of containerd; until "+
			"then the service waits")
	}
	return append(notes, s.containerd(ctx)...), nil
}

func (s *services) start(ctx context.Context) error {
	p := s.plan
	if p.touches(ofSystemd) {
		if err := s.systemd.reload(ctx); err != nil {
			return err
		}
	}
	// Options are reloaded.
	again := p.touches(func(s Step) bool { return s.Path != optionsFile && !forContainerd(s.Path) })
	if !p.service() || p.ofPackage() || s.wasActive && !again || !s.wasActive && p.disabled() {
		return nil
	}
	s.disturbed = true
	return s.systemd.restart(ctx, unit)
}

func (s *services) containerd(ctx context.Context) (notes []string) {
	todo := s.plan.containerdReads(ctx)
	if len(todo) == 0 {
		return nil
	}
	what := "containerd has to be restarted, which leaves running pods alone. It reads only when it starts:\n  " +
		strings.Join(todo, "\n  ")
	if s.systemd != nil {
		what += "\n\n  systemctl restart " + s.plan.containerdUnit()
	}
	return []string{what}
}

func (s *services) back(ctx context.Context) error {
	if s.systemd == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	var errs []error
	if s.plan.touches(ofSystemd) {
		errs = append(errs, s.systemd.reload(ctx))
	}
	switch {
	case !s.disturbed:
	case s.wasActive:
		errs = append(errs, s.systemd.restart(ctx, unit))
	default:
		errs = append(errs, s.systemd.stop(ctx, unit))
	}
	return errors.Join(errs...)
}

func (p *Plan) containerdUnit() string {
	if w := p.tree.platform(); w != nil && w.service != "" {
		return w.service + ".service"
	}
	return "containerd.service"
}

func (p *Plan) containerdReads(ctx context.Context) (files []string) {
	for _, s := range p.Steps {
		switch {
		case !forContainerd(s.Path):
		case s.Does != Keeps && s.Does != Same:
			files = append(files, fmt.Sprintf("%s (%s)", s.Path, s.Does))
		case p.wish != nil && p.tree.newer(ctx, s.Path, p.wish.address):
			files = append(files, s.Path+" (newer than containerd's start)")
		}
	}
	return files
}
