package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/pkg/timeline"
	"github.com/cniscope/cniscope/pkg/trace"
	"github.com/cniscope/cniscope/pkg/usual"
)

// settings is what the way from events to spans depends on. A recording carries them, so
// that a replay gives the spans that were exported.
type settings struct {
	Timeline timeline.Options `json:"timeline"`
	Judge    judge.Options    `json:"judge"`
	Node     trace.Node       `json:"node"`
	// Fold is trace.fold_commands.
	Fold bool `json:"fold,omitempty"`
	// Baseline is what was usual when the recording began; nil if nothing was known. It is read apart: see baselineIn.
	Baseline *usual.Document `json:"-"`
}

func settingsOf(o config.Options, bootID string) settings {
	hostname, _ := os.Hostname() // without one, the host has no name
	t := timelineOf(o)
	if o.Relay.Listen == "" {
		t.Wait = 0 // nobody will tell anything
	}
	return settings{
		Timeline: t,
		Judge:    judgeOf(o),
		Fold:     o.Trace.FoldCommands,
		Node: trace.Node{
			Name: o.Resource.Node, Cluster: o.Resource.Cluster, Attributes: o.Resource.Attributes,
			Host: hostname, OS: runtime.GOOS, Arch: runtime.GOARCH,
			Instance: bootID, Version: version(),
		},
	}
}

func timelineOf(o config.Options) timeline.Options {
	return timeline.Options{
		Wait:   o.Relay.Wait,
		Settle: o.Limits.Settle, MaxHold: o.Limits.MaxHold, Hung: o.Slow.Hung,
		Processes: o.Limits.Processes, Operations: o.Limits.Operations, Images: o.Limits.Images, Facts: o.Limits.Facts, MinSpan: o.Limits.MinSpan,
	}
}

// judgeOf is the part that changes while cniscope runs.
func judgeOf(o config.Options) judge.Options {
	j := judge.Options{
		Thresholds: judge.Thresholds{Command: o.Slow.Command, Call: o.Slow.Call, Agent: o.Slow.Agent, Lock: o.Slow.Lock, Baseline: o.Slow.Baseline, Floor: o.Slow.Floor},
		Sampling:   judge.Sampling{Ratio: o.Sampling.Ratio, Annotations: o.Sampling.AnnotationNamespaces, PerSecond: o.Sampling.PerSecond},
	}
	for _, rule := range o.Sampling.Rules {
		j.Namespaces = append(j.Namespaces, judge.NamespaceRule{Pattern: rule.Namespace, Ratio: rule.Ratio})
	}
	for _, rule := range o.Slow.Rules {
		j.Rules = append(j.Rules, judge.Rule{Pattern: rule.Command, Threshold: rule.Threshold})
	}
	for _, keep := range o.Sampling.Keep {
		j.Keep = append(j.Keep, judge.Reason(keep))
	}
	return j
}

// pipeline makes the way from events to spans on the node that was up as bootID.
func (s settings) pipeline(bootID string) *pipeline.Pipeline {
	p := pipeline.New(s.Timeline, s.Judge, trace.NewBuilder(trace.IDs{Seed: bootID}, s.Node.Resource(), s.Node.Version))
	if s.Baseline != nil {
		p.Usual = s.Baseline.Book()
	}
	return p
}

// header begins a recording with these settings.
func (s settings) header() (record.Header, error) {
	h := record.Host()
	h.Writer, h.Node = version(), s.Node.Name
	options, err := json.Marshal(struct {
		settings
		Baseline *usual.Document `json:"baseline,omitempty"`
	}{s, s.Baseline})
	if err != nil {
		return h, fmt.Errorf("writing the options into the recording: %w", err)
	}
	h.Options = options
	return h, nil
}

// settingsIn returns the settings that a recording was made with. What it leaves out, and what no
// options file could say, is the default; said describes the latter. So whoever made the file
// does not decide what reading it costs.
func settingsIn(h record.Header) (s settings, said []string, err error) {
	s = settingsOf(config.Default(), h.BootID)
	s.Node = trace.Node{Name: h.Node, Arch: h.Arch, Version: h.Writer}
	if len(h.Options) == 0 {
		return s, nil, nil
	}
	if err := json.Unmarshal(h.Options, &s); err != nil {
		return s, nil, fmt.Errorf("reading the options in the recording's first line: %w", err)
	}
	var old struct{ Timeline struct{ Spans int } } // version 1 had one bound for both
	if json.Unmarshal(h.Options, &old) == nil && old.Timeline.Spans != 0 {
		s.Timeline.Images, s.Timeline.Facts = old.Timeline.Spans, old.Timeline.Spans/2
	}
	o := s.options()
	said = o.Repair()
	if s.Baseline, err = baselineIn(h); err != nil {
		said = append(said, fmt.Sprintf("the baseline cannot be read (%v): it begins anew", err))
	}
	wait := s.Timeline.Wait
	s.Timeline, s.Judge, s.Node.Attributes = timelineOf(o), judgeOf(o), o.Resource.Attributes
	if wait == 0 { // nobody told anything
		s.Timeline.Wait = 0
	}
	return s, said, nil
}

// baselineIn returns the baseline that a recording carries; nil if it has none, or one that cannot be.
func baselineIn(h record.Header) (*usual.Document, error) {
	var options struct{ Baseline json.RawMessage }
	if err := json.Unmarshal(h.Options, &options); err != nil || len(options.Baseline) == 0 {
		return nil, err
	}
	return usual.Parse(options.Baseline)
}

func (s settings) options() config.Options {
	o := config.Default()
	t, j := s.Timeline, s.Judge
	if t.Wait != 0 {
		o.Relay.Wait = t.Wait
	}
	o.Limits = config.Limits{Settle: t.Settle, MaxHold: t.MaxHold, Processes: t.Processes, Operations: t.Operations, Images: t.Images, Facts: t.Facts, MinSpan: t.MinSpan}
	o.Slow = config.Slow{Command: j.Command, Call: j.Call, Agent: j.Agent, Lock: j.Lock, Hung: t.Hung, Baseline: j.Baseline, Floor: j.Floor, Readiness: o.Slow.Readiness, FirstConnection: o.Slow.FirstConnection}
	for _, rule := range j.Rules {
		o.Slow.Rules = append(o.Slow.Rules, config.Rule{Command: rule.Pattern, Threshold: rule.Threshold})
	}
	o.Sampling = config.Sampling{Ratio: j.Ratio, AnnotationNamespaces: j.Annotations, PerSecond: j.PerSecond}
	for _, rule := range j.Namespaces {
		o.Sampling.Rules = append(o.Sampling.Rules, config.NamespaceRule{Namespace: rule.Pattern, Ratio: rule.Ratio})
	}
	for _, keep := range j.Keep {
		o.Sampling.Keep = append(o.Sampling.Keep, string(keep))
	}
	o.Resource.Attributes = s.Node.Attributes
	return o
}
