//go:build !windows

package gather

import (
	"context"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

func stateOfHNS(context.Context) (string, error) { return "", fact.ErrElsewhere }
func allPipes(context.Context) ([]string, error) { return nil, fact.ErrElsewhere }
func try(context.Context) (fact.Trial, error)    { return fact.Trial{}, fact.ErrElsewhere }
