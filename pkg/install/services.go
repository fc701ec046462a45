package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// unit is cniscope's systemd unit.
const unit = "cniscope.service"

// systemdRuns reports whether systemd booted this system (sd_booted(3)).
func systemdRuns() bool {
	info, err := os.Lstat("/run/systemd/system")
	return err == nil && info.IsDir()
}

func systemctl(ctx context.Context, arguments ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "systemctl", arguments...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = errors.New(strings.Join(strings.Split(strings.TrimSpace(string(exit.Stderr)), "\n"), "; "))
	}
	if err != nil {
		return "", fmt.Errorf("systemctl %s: failed: %w", strings.Join(arguments, " "), err)
	}
	return string(out), nil
}

// unitState is the state of cniscope's unit.
type unitState struct {
	active, load string // such as "active" or "failed", "loaded" or "masked"
	pid          int    // its main process, or 0
	says         string // its status text
}

func askUnit(ctx context.Context) (u unitState, err error) {
	text, err := systemctl(ctx, "show", "--property=ActiveState,LoadState,MainPID,StatusText", unit)
	for line := range strings.Lines(text) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), "="); name {
		case "ActiveState":
			u.active = value
		case "LoadState":
			u.load = value
		case "MainPID":
			u.pid, _ = strconv.Atoi(value)
		case "StatusText":
			u.says = value
		}
	}
	return u, err
}

type services struct {
	plan      *Plan
	systemd   bool // systemd runs on this node
	wasActive bool // cniscope ran as a service
	disturbed bool // it was stopped or started
}

func (p *Plan) services(ctx context.Context) (*services, error) {
	s := &services{plan: p, systemd: p.tree.live() && systemdRuns()}
	if !s.systemd {
		return s, nil
	}
	u, err := askUnit(ctx)
	s.wasActive = slices.Contains([]string{"active", "activating", "reloading"}, u.active)
	if err == nil && u.load == "masked" && p.service() {
		err = fmt.Errorf("%s is masked: run systemctl unmask %s first", unit, unit)
	}
	return s, err
}

// job runs "start", "restart" or "stop" on the unit, and waits for it.
func (s *services) job(ctx context.Context, verb string) error {
	s.disturbed = true
	if _, err := systemctl(ctx, verb, unit); err != nil {
		return fmt.Errorf("%w; see journalctl -u %s", err, unit)
	}
	return nil
}

func (s *services) reload(ctx context.Context) error {
	if !s.plan.touches(ofSystemd) {
		return nil
	}
	_, err := systemctl(ctx, "daemon-reload")
	return err
}

// service reports whether the plan makes cniscope a service.
func (p *Plan) service() bool { return p.wish != nil && p.options.As == Service }

// ofPackage reports whether a package owns the service, before and after.
func (p *Plan) ofPackage() bool {
	return p.tree.packaged() && !p.touches(func(s Step) bool { return s.Path == unitFile })
}

// disabled reports whether the service was disabled since its installation.
func (p *Plan) disabled() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Path == enabledLink && s.Does == Keeps })
}

// touches reports whether the plan changes a matching file.
func (p *Plan) touches(match func(Step) bool) bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Does != Keeps && s.Does != Same && match(s) })
}

func ofSystemd(s Step) bool { return strings.HasPrefix(s.Path, "/etc/systemd/system/") }

// before stops the service if it will not be one. A package's continues.
func (s *services) before(ctx context.Context) error {
	if !s.systemd || !s.wasActive || s.plan.service() || s.plan.ofPackage() {
		return nil
	}
	return s.job(ctx, "stop")
}

// after starts services once the files are in place, and returns notes.
func (s *services) after(ctx context.Context) (notes []string, err error) {
	p := s.plan
	if !p.tree.live() {
		return nil, nil
	}
	if s.systemd {
		if err := s.start(ctx); err != nil {
			return nil, err
		}
	} else if p.service() && !p.ofPackage() {
		notes = append(notes, fmt.Sprintf("systemd does not run here: %s is installed, and starts when the node is booted "+
			"with systemd. To start cniscope without it:\n\n  %s run --config %s", unit, p.wish.program, optionsFile))
	}
	if p.manifest != nil && p.touches(func(s Step) bool {
		return s.Does == Removes && strings.HasSuffix(s.Path, "/"+pluginName)
	}) {
		notes = append(notes, "the cniscope that containerd has started goes with the next restart of containerd; until "+
			"then the service waits")
	}
	return append(notes, s.containerd(ctx)...), nil
}

// start starts or restarts the service.
func (s *services) start(ctx context.Context) error {
	p := s.plan
	if err := s.reload(ctx); err != nil {
		return err
	}
	// Options are reloaded; other changes need a restart.
	again := p.touches(func(s Step) bool { return s.Path != optionsFile && !s.containerd })
	if !p.service() || p.ofPackage() || s.wasActive && !again || !s.wasActive && p.disabled() {
		return nil
	}
	return s.job(ctx, "restart")
}

// containerd returns a note if containerd must be restarted.
func (s *services) containerd(ctx context.Context) (notes []string) {
	todo := s.plan.containerdReads(ctx)
	if len(todo) == 0 {
		return nil
	}
	what := "containerd has to be restarted, which leaves running pods alone. It reads only when it starts:\n  " +
		strings.Join(todo, "\n  ")
	if s.systemd {
		what += "\n\n  systemctl restart " + s.plan.containerdUnit()
	}
	return []string{what}
}

// back restores the services after the files were restored.
func (s *services) back(ctx context.Context) error {
	if !s.systemd {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	err := s.reload(ctx)
	switch {
	case !s.disturbed:
	case s.wasActive:
		err = errors.Join(err, s.job(ctx, "restart"))
	default:
		err = errors.Join(err, s.job(ctx, "stop"))
	}
	return err
}

// containerdUnit returns containerd's systemd unit.
func (p *Plan) containerdUnit() string {
	if w := p.tree.platform(); w != nil && w.service != "" {
		return w.service + ".service"
	}
	return "containerd.service"
}

// containerdReads lists files that containerd has not read since they changed.
func (p *Plan) containerdReads(ctx context.Context) (files []string) {
	for _, s := range p.Steps {
		switch {
		case !s.containerd:
		case s.Does != Keeps && s.Does != Same:
			files = append(files, fmt.Sprintf("%s (%s)", s.Path, s.Does))
		case p.wish != nil && p.tree.newer(ctx, s.Path, p.wish.address):
			files = append(files, s.Path+" (newer than containerd's start)")
		}
	}
	return files
}
