package firewall

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/test/harness"
)

// It answers each wish, only of chains that drop, with an error's words.
func TestTheChainsThatDropAreListed(t *testing.T) {
	n := 0
	var out bytes.Buffer
	err := serve(strings.NewReader("true\ntrue\n"), &out, func(context.Context) ([]fact.Chain, error) {
		if n++; n == 2 {
			return nil, errors.New("not permitted")
		}
		return []fact.Chain{{Name: "INPUT"}, {Name: "FORWARD", Drops: true, Rules: 3}, {Name: "CNI-DN-07", Rules: 1}}, nil
	})
	if err != nil || n != 2 || strings.Contains(out.String(), "INPUT") || !strings.Contains(out.String(), `"FORWARD","Drops":true,"Handle":0,"Rules":3`) || !strings.Contains(out.String(), "CNI-DN-07") ||
		!strings.Contains(out.String(), `"Error":"not permitted"`) {
		t.Errorf("%v, %s", err, out.String())
	}
}

// A process that was killed is an error of each question, and blocks none.
func TestAProcessThatEndedIsAnError(t *testing.T) {
	p := harness.Must(Start([]string{"/bin/true"}))(t)
	for range 2 {
		if _, err := p.Chains(t.Context()); err == nil {
			t.Error("it answers")
		}
	}
}
