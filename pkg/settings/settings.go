// Package settings derives the pipeline's settings from options, and puts them in recordings.
package settings

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/pkg/timeline"
	"github.com/cniscope/cniscope/pkg/trace"
)

// Settings turn events into spans. Recordings carry the options, so that a replay gives the exported spans.
type Settings struct {
	Timeline timeline.Options
	Judge    judge.Options
	Node     trace.Node
	Fold     bool
	Baseline *baseline.Document

	options config.Options
}

// Of returns settings for the boot bootID.
func Of(o config.Options, bootID, version string) Settings {
	hostname, _ := os.Hostname() // then the host has no name
	return Settings{
		Timeline: timelineOf(o),
		Judge:    JudgeOf(o),
		Fold:     o.Trace.FoldCommands,
		Node: trace.Node{
			Name: o.Resource.Node, Cluster: o.Resource.Cluster, Attributes: o.Resource.Attributes,
			Host: hostname, OS: runtime.GOOS, Arch: runtime.GOARCH,
			Instance: bootID, Version: version,
		},
		options: o,
	}
}

func timelineOf(o config.Options) timeline.Options {
	wait := o.Relay.Wait
	if o.Relay.Listen == "" {
		wait = 0 // no spans of the runtime will come
	}
	l := o.Limits
	return timeline.Options{
		Wait: wait, Settle: l.Settle, MaxHold: l.MaxHold, Hung: o.Slow.Hung, Late: o.Slow.FirstConnection, MinSpan: l.MinSpan,
		Processes: l.Processes, Operations: l.Operations, Images: l.Images, Facts: l.Facts,
	}
}

// JudgeOf returns settings that change while cniscope runs.
func JudgeOf(o config.Options) judge.Options {
	slow, sampling := o.Slow, o.Sampling
	j := judge.Options{
		Thresholds: judge.Thresholds{
			Command: slow.Command, Call: slow.Call, Agent: slow.Agent, Lock: slow.Lock,
			Baseline: slow.Baseline, Floor: slow.Floor,
		},
		Sampling: judge.Sampling{
			Ratio: sampling.Ratio, Annotations: sampling.Annotated, PerSecond: sampling.PerSecond,
			ParentBased: sampling.ParentBased,
		},
	}
	for _, rule := range sampling.Rules {
		j.Namespaces = append(j.Namespaces, judge.NamespaceRule{Pattern: rule.Namespace, Ratio: rule.Ratio})
	}
	for _, rule := range slow.Rules {
		j.Rules = append(j.Rules, judge.Rule{Pattern: rule.Command, Threshold: rule.Threshold})
	}
	for _, keep := range sampling.Keep {
		j.Keep = append(j.Keep, judge.Reason(keep))
	}
	return j
}

// Pipeline returns a pipeline for the boot bootID.
func (s Settings) Pipeline(bootID string) *pipeline.Pipeline {
	p := pipeline.New(s.Timeline, s.Judge, trace.NewBuilder(trace.IDs{Seed: bootID}, s.Node.Resource(), s.Node.Version))
	if s.Baseline != nil {
		p.Usual = s.Baseline.Book()
	}
	return p
}

// Header returns a recording's first line.
func (s Settings) Header() (record.Header, error) {
	h := record.Host()
	h.Writer, h.Node = s.Node.Version, s.Node.Name
	carried := s.options.Recorded()
	carried["node"] = s.Node
	carried["judge"].(map[string]any)["All"] = s.Judge.All // as 0.2 has it
	if s.Baseline != nil {
		carried["baseline"] = s.Baseline
	}
	options, err := json.Marshal(carried)
	if err != nil {
		return h, fmt.Errorf("writing the options into the recording: %w", err)
	}
	h.Options = options
	return h, nil
}

// In returns a recording's settings, and notes on replaced options (config.FromRecording).
func In(h record.Header) (s Settings, said []string, err error) {
	o, said, err := config.FromRecording(h.Options)
	carried := struct{ Node trace.Node }{trace.Node{Name: h.Node, Arch: h.Arch, Version: h.Writer}}
	if err == nil && len(h.Options) > 0 {
		err = json.Unmarshal(h.Options, &carried)
	}
	if err != nil {
		return s, nil, fmt.Errorf("reading the options in the recording's first line: %w", err)
	}
	s = Of(o, h.BootID, "")
	s.Node = carried.Node
	s.Node.Attributes = o.Resource.Attributes
	if s.Baseline, err = baselineIn(h); err != nil {
		said = append(said, fmt.Sprintf("the baseline cannot be read (%v): learning starts again", err))
	}
	return s, said, nil
}

func baselineIn(h record.Header) (*baseline.Document, error) {
	var options struct{ Baseline json.RawMessage }
	if len(h.Options) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(h.Options, &options); err != nil || len(options.Baseline) == 0 {
		return nil, err
	}
	return baseline.Parse(options.Baseline)
}
