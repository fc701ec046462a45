package image

import (
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/test/harness"
)

func TestBaggageIsASecret(t *testing.T) {
	known := &redact.Call{}
	Acquaint(known, &redact.Inherited{}, &event.Exec{Name: "bridge", Call: &event.Call{Command: "ADD"}}, []string{"BAGGAGE=owner=failed interface"}, nil)
	known.Configuration(nil)
	if said := known.Message("failed interface"); strings.Contains(said, "failed interface") {
		t.Error(said)
	}
}

func TestACutBaggageHasOnlyWholeMembers(t *testing.T) {
	long := "BAGGAGE=team=blue,key=" + strings.Repeat("x", variableMax)
	for said, want := range map[string]string{
		"BAGGAGE=team=blue,key=x": "team=blue,key=x",
		long[:variableMax]:        "team=blue",
		long:                      "team=blue",
		"BAGGAGE=" + long[len("BAGGAGE=team=blue,"):]: "",
	} {
		vars, cut := Parse([]string{said})
		harness.Equal(t, vars.call().Baggage, want, said)
		harness.Equal(t, cut, false, said)
	}
}
