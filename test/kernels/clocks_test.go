package kernels

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/kernels/traced"
)

var stepping = []string{"5.10", "6.1", "6.12", "newest", "6.12, connector"}

// Across clock steps and suspends each call keeps one trace, its duration and its start.
func TestCallsAcrossStepsOfTheClock(t *testing.T) {
	which := os.Getenv("CNISCOPE_CLOCKS")
	if which == "" {
		t.Skip("make test-clocks runs it")
	}
	for _, name := range stepping {
		if which != "all" && which != name {
			continue
		}
		t.Run(name, func(t *testing.T) {
			k := named(name)
			k.needed(t)
			k.options += " cniscope.clocks=1"
			k.programs = map[string]string{"collector": "./collector"}
			console := string(run(t, k, "-smp", "1"))
			_, complete := read(t, []byte(console))
			turned, runs, spans := said(t, console)
			t.Logf("the clock was %s; %d runs, %d spans", strings.Join(turned, ", "), len(runs), len(spans))
			if !complete || len(turned) < 5 || len(runs) == 0 {
				t.Fatalf("the machine did not come to its end:\n%s", console)
			}
			for _, wrong := range traced.Compare(runs, spans) {
				t.Error(wrong)
			}
			if t.Failed() {
				t.Log(console)
			}
		})
	}
}

func said(t *testing.T, console string) (turned []string, runs []traced.Run, spans []traced.Span) {
	t.Helper()
	parse := func(text string, into any) {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
	}
	for line := range strings.Lines(console) {
		switch kind, rest, _ := strings.Cut(strings.TrimSpace(line), " "); kind {
		case "turned":
			turned = append(turned, rest)
		case "not":
			t.Log("the clock was not", rest)
		case "called":
			var r traced.Run
			parse(rest, &r)
			runs = append(runs, r)
		case "span":
			var s traced.Span
			parse(rest, &s)
			spans = append(spans, s)
		}
	}
	return turned, runs, spans
}
