package judge

import (
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

// The networks of delegated plugins, as of Multus, have their own baselines.
func TestEachNetworkIsLearntApart(t *testing.T) {
	bridge := func(network string) *model.Image {
		im := plugin("bridge", 10, 90)
		im.Run.Configuration = &event.Configuration{Network: network}
		return im
	}
	multus := plugin("multus", 0, 100)
	multus.Run.Configuration = &event.Configuration{Network: "multus"}
	multus.Children = []*model.Image{bridge("pods"), bridge("tenant")}
	op := add(multus)
	op.Calls[0].Network, op.Calls[0].Configured = "multus", "18ac"
	var known baseline.Book
	Options{Thresholds: Thresholds{Baseline: true}}.JudgeBy(&known, op)
	got := map[string]string{}
	for _, k := range known.Known() {
		got[k.Network+" "+k.Plugin] = k.Configuration
	}
	want := map[string]string{"multus multus": "18ac", "pods bridge": "", "tenant bridge": ""}
	harness.Equal(t, len(got), len(want), "known are", got)
	for k, configuration := range want {
		if is, ok := got[k]; !ok || is != configuration {
			t.Errorf("%s is of the configuration %q, known are %v", k, is, got)
		}
	}
}

func TestASpellIsReportedAtItsBegin(t *testing.T) {
	var known baseline.Book
	var found []baseline.Kind
	for n := range int64(baseline.Enough + 40) {
		op := add(plugin("bridge", 0, 100))
		if n > baseline.Enough+20 {
			op = add(plugin("bridge", 0, 3000))
		}
		for _, f := range (Options{Thresholds: Thresholds{Baseline: true}}).JudgeBy(&known, op).Findings {
			found = append(found, f.Kind)
		}
	}
	harness.EqualSlices(t, found, []baseline.Kind{baseline.Slower})
}

// The verdict compares the image that was slower for many times its usual duration, and of equal ones the outer one.
func TestWhichImageIsCompared(t *testing.T) {
	second := func(slower bool, usual time.Duration) baseline.Answer {
		return baseline.Answer{Above: true, Slower: slower, Usual: baseline.Level{Median: usual, P99: usual}}
	}
	for name, test := range map[string]struct {
		bridge, ipam, ip *baseline.Answer
		want             string
	}{
		"none":                        {},
		"only a command":              {ip: new(second(false, 20*time.Millisecond)), want: "; ip took 2× "},
		"the one of more times":       {bridge: new(second(false, 50*time.Millisecond)), ip: new(second(false, 10*time.Millisecond)), want: "; ip took 4× "},
		"the slower one of less":      {bridge: new(second(true, 50*time.Millisecond)), ip: new(second(false, 10*time.Millisecond)), want: "; bridge ADD took 2× "},
		"the slower one behind":       {bridge: new(second(false, 10*time.Millisecond)), ipam: new(second(true, 40*time.Millisecond)), want: "; ipam ADD took 1.5× "},
		"of two slower ones the more": {bridge: new(second(true, 10*time.Millisecond)), ipam: new(second(true, 40*time.Millisecond)), want: "; bridge ADD took 10× "},
		"of equal ones the outer":     {bridge: new(second(true, 50*time.Millisecond)), ipam: new(second(true, 30*time.Millisecond)), want: "; bridge ADD took 2× "},
	} {
		t.Run(name, func(t *testing.T) {
			ip, ipam := ran("ip", 10, 50), plugin("ipam", 20, 80)
			bridge := plugin("bridge", 0, 100, ip, ipam)
			j := &Judgement{}
			for im, a := range map[*model.Image]*baseline.Answer{bridge: test.bridge, ipam: test.ipam, ip: test.ip} {
				if a != nil {
					if j.Usual == nil {
						j.Usual = map[*model.Image]baseline.Answer{}
					}
					j.Usual[im] = *a
				}
			}
			got := j.compared(add(bridge).Calls[0])
			if !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
				t.Errorf("%q, want %q", got, test.want)
			}
			harness.Equal(t, j.Slower(add(bridge).Calls[0]), strings.Contains(name, "slower") || strings.Contains(name, "equal"), "slower")
		})
	}
}
