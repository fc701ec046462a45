package firewall

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

// It answers each wish, only of chains that drop, with an error's words.
func TestTheChainsThatDropAreListed(t *testing.T) {
	n := 0
	var out bytes.Buffer
	err := serve(strings.NewReader("true\ntrue\n"), &out, func(context.Context) ([]fact.Chain, error) {
		if n++; n == 2 {
			return nil, errors.New("not permitted")
		}
		return []fact.Chain{{Name: "INPUT"}, {Name: "FORWARD", Drops: true, Rules: 3}}, nil
	})
	if err != nil || n != 2 || strings.Contains(out.String(), "INPUT") || !strings.Contains(out.String(), `"FORWARD","Drops":true,"Rules":3`) ||
		!strings.Contains(out.String(), `"Error":"not permitted"`) {
		t.Errorf("%v, %s", err, out.String())
	}
}
