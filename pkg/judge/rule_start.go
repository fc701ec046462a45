package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// Started is the judgement of a start.
type Started struct {
	Took        time.Duration
	Slow        time.Duration // exceeded threshold
	Failed      string
	Before      []StartPart
	Parts       []StartPart
	Runtime     time.Duration
	Unexplained time.Duration
	Verdict     *Verdict
}

// StartPart is a part beside the network; Step is nil for NRI and the runtime.
type StartPart struct {
	Name     string
	From, To int64
	Step     *model.Step
	Below    []*model.Step
	Cause    Cause
	says     string // of the verdict
	remedy   string
	own      time.Duration // without Below
}

// Start judges a sandbox's start beside its network setup.
func (o Options) Start(s model.Start) Started {
	begin, before := beforeNetwork(&s)
	j := Started{Took: time.Duration(s.To - begin), Before: before}
	at, last := s.Network, "the network was set up"
	idle := func(until int64, next string) {
		switch d := time.Duration(until - at); {
		case d >= leastGap:
			j.Runtime += d
			j.Parts = append(j.Parts, gap(&s, at, until, last, next))
		case d > 0:
			j.Unexplained += d
		}
	}
	for _, p := range startParts(&s) {
		idle(p.From, p.Name)
		if p.To > at {
			at, last = p.To, p.Name
		}
		j.Parts = append(j.Parts, p)
	}
	idle(s.To, "NRI reported the sandbox")
	if beside := time.Duration(s.To - s.Network + s.From - begin); o.Call > 0 && beside > o.Call {
		j.Slow = o.Call
	} else if s.Sandbox != nil && s.Sandbox.Late > 0 {
		j.Slow = event.LateReport
	}
	if v := failedStart(&s, &j); v != nil || j.Slow == 0 {
		j.Verdict = v
		return j
	}
	var most StartPart
	for _, p := range shares(slices.Concat(j.Before, j.Parts)) {
		if p.own > most.own {
			most = p
		}
	}
	j.Verdict = most.verdict(j.Took)
	if s.Network > s.From {
		j.Verdict.Says += fmt.Sprintf("; CNI took %s", text.Round(time.Duration(s.Network-s.From)))
	}
	return j
}

func beforeNetwork(s *model.Start) (begin int64, parts []StartPart) {
	const asked = "it was asked for the sandbox"
	begin = s.From
	add := func(since int64, name, says, remedy string) {
		if since == 0 || since >= begin {
			return
		}
		p := StartPart{Name: name, From: since, To: begin, Cause: CauseRuntime, says: says, remedy: remedy}
		for _, step := range s.Steps { // user namespaces' (containerd 1.7)
			if step.End > since {
				p.To = min(p.To, max(since, step.Started))
			}
		}
		if begin = since; p.From < p.To {
			parts = slices.Insert(parts, 0, p)
		}
	}
	since, remedy := "it mounted the network namespace", ""
	if s.Mounted == 0 {
		since, remedy = asked, prepareRemedy
	}
	add(cmp.Or(s.Mounted, s.Asked), "prepare network", "the runtime ran no plugin after "+since, remedy)
	add(s.Asked, "create network namespace", "the runtime mounted no network namespace after "+asked, prepareRemedy)
	return begin, parts
}

func (p StartPart) verdict(of time.Duration) *Verdict {
	says := fmt.Sprintf("%s of %s: %s", text.Round(p.own), text.Round(of), p.says)
	return &Verdict{Cause: p.Cause, Says: says, Certain: true, Remedy: cmp.Or(p.remedy, p.Cause.remedy())}
}

func gap(s *model.Start, from, to int64, before, next string) StartPart {
	p := StartPart{Name: "runtime", From: from, To: to, Cause: CauseRuntime}
	p.says = fmt.Sprintf("the runtime ran no program after %s and before %s", before, next)
	if from == s.Network && len(s.Steps) > 0 {
		p.Name, p.remedy = "prepare sandbox", prepareRemedy
		p.says += ", when it prepares the sandbox's container"
	}
	return p
}

const (
	leastGap      = time.Millisecond
	prepareRemedy = "run crictl images and iostat -x 1: the runtime pulls the sandbox image if it is missing, " +
		"and writes to disk; read its log of that time"
)

func shares(parts []StartPart) (all []StartPart) {
	for _, p := range parts {
		p.own = time.Duration(p.To - p.From)
		for _, b := range p.Below {
			took := time.Duration(b.End - b.Started)
			p.own -= took
			cause, says := CauseHook, fmt.Sprintf("%s ran OCI hook %s", p.Name, b.Name)
			if b.Kind != event.StepHook {
				cause, says = p.Cause, fmt.Sprintf("%s ran %s", p.Name, b.Name)
			}
			all = append(all, StartPart{Cause: cause, says: says, own: took})
		}
		all = append(all, p)
	}
	return all
}

// startParts are in order of time. The shim lasts until its server runs the OCI runtime.
func startParts(s *model.Start) (parts []StartPart) {
	for i := range s.Steps {
		step := &s.Steps[i]
		p := StartPart{Name: step.Name, From: step.Started, To: step.End, Step: step}
		switch step.Kind {
		case event.StepShim:
			p.Cause, p.says = CauseShim, fmt.Sprintf("shim %s started", step.Name)
			for i := range s.Steps {
				next := &s.Steps[i]
				if next.Kind == event.StepCommand && next.Parent != step.Process { // by the shim's server
					p.Below = append(p.Below, next)
				}
				if next.Kind == event.StepRuntime && next.Started > p.To {
					p.To = next.Started
					break
				}
			}
		case event.StepRuntime:
			p.Name = strings.TrimSpace(step.Name + " " + step.Verb)
			p.Below, p.Cause, p.says = s.Below(step), CauseOCIRuntime, ociWaited(p.Name, step)
		default:
			continue
		}
		parts = append(parts, p)
	}
	if p := nriPart(s); p != nil {
		parts = append(parts, *p)
	}
	slices.SortStableFunc(parts, func(a, b StartPart) int { return cmp.Compare(a.From, b.From) })
	return parts
}

func ociWaited(name string, s *model.Step) string {
	busy := s.Used.CPU+s.Used.RunDelay > (s.End-s.Started)/2
	switch {
	case busy && s.Used.CPU > s.Used.RunDelay:
		return name + " computed"
	case busy:
		return name + " waited for a CPU"
	case s.Systemd:
		return name + " waited, possibly for systemd to make its cgroup"
	}
	return name + " waited, possibly for the kernel or a disk"
}

func nriPart(s *model.Start) *StartPart {
	if s.Sandbox == nil || s.Reported == 0 || len(s.Sandbox.Plugins) == 0 && (s.Sandbox.Late == 0 || len(s.Steps) > 0) {
		return nil
	}
	since := s.Network
	if len(s.Steps) == 0 {
		since = max(since, s.Reported-s.Sandbox.Late)
	}
	for _, step := range s.Steps {
		if step.End <= s.Reported {
			since = max(since, step.End)
		}
	}
	if s.Sandbox.Unasked > 0 {
		since = max(since, s.Reported-s.Sandbox.Unasked)
	}
	p := &StartPart{Name: "NRI", From: since, To: s.Reported, Cause: CauseNRI}
	took := text.Round(time.Duration(p.To - p.From))
	states := map[event.AgentState][]string{}
	for _, one := range s.Sandbox.Plugins {
		states[one.State] = append(states[one.State], fmt.Sprintf("%s (pid %d)", one.Name, one.PID))
	}
	lacks := ""
	if s.Request == model.RunPodSandbox {
		lacks = "; the pod lacks what it adds"
	}
	named := func(of event.AgentState) string { return strings.Join(states[of], ", ") }
	switch {
	case len(states[event.NRIExited]) > 0: // also if it was disconnected
		p.says = fmt.Sprintf("NRI plugin %s did not answer %s within %s, and exited"+lacks,
			named(event.NRIExited), s.Request, took)
	case len(states[event.NRICut]) > 0:
		p.says = fmt.Sprintf("NRI plugin %s did not answer %s within %s, and was disconnected"+lacks,
			named(event.NRICut), s.Request, took)
	case len(states[event.NRIAnswered]) > 1:
		p.says = fmt.Sprintf("NRI plugins %s ran %s", named(event.NRIAnswered), s.Request)
	case len(states[event.NRIAnswered]) == 1:
		p.says = fmt.Sprintf("NRI plugin %s ran %s", named(event.NRIAnswered), s.Request)
	case len(s.Sandbox.Plugins) > 0:
		p.says = fmt.Sprintf("the runtime waited for at least one of the NRI plugins %s", named(""))
	default:
		p.Cause, p.says = CauseRuntime, "the runtime waited before NRI reported the sandbox"
	}
	if len(s.Sandbox.Plugins) == 1 {
		p.Name = "NRI " + s.Sandbox.Plugins[0].Name
	}
	return p
}

func failedStart(s *model.Start, j *Started) *Verdict {
	for _, p := range j.Parts {
		v := &Verdict{Cause: p.Cause, Certain: true, Remedy: p.Cause.remedy()}
		switch {
		case p.Step != nil && p.Step.Failed():
			v.Says, v.Remedy = Ended(p.Name, p.Step), undoneRemedy
			for _, b := range p.Below {
				if b.Failed() {
					v.Says = fmt.Sprintf("%s: %s", v.Says, Ended(b.Name, b))
					if b.Kind == event.StepHook {
						v.Cause, v.Remedy = CauseHook, CauseHook.remedy()
					}
				}
			}
			j.Failed = v.Says
			return v
		case s.Request == model.RunPodSandbox && p.Cause == CauseNRI && slices.ContainsFunc(s.Sandbox.Plugins, lostPlugin):
			v.Says, j.Failed = p.says, p.says
			return v
		}
	}
	return nil
}

func lostPlugin(p event.Actor) bool { return p.State == event.NRICut || p.State == event.NRIExited }

// Ended describes how a failed step ended.
func Ended(name string, s *model.Step) string {
	if s.Signal != "" {
		return killedBy(name, s.Signal, s.End-s.Started)
	}
	return fmt.Sprintf("%s exited %s", name, text.ExitCode(s.Code))
}
