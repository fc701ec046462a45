package gather

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

// clockState reads the kernel's clock without setting anything (modes 0).
func clockState(context.Context) (fact.Clock, error) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return fact.Clock{}, fmt.Errorf("adjtimex: %w", err)
	}
	return fact.Clock{
		Synchronised: state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0,
		MaxError:     time.Duration(t.Maxerror) * time.Microsecond,
	}, nil
}
