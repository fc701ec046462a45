package text_test

import (
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/text"
)

func TestDuration(t *testing.T) {
	const day = 24 * time.Hour
	for s, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "1d": day, "2w": 14 * day, "1w2d3h": 9*day + 3*time.Hour, "0": 0, "-1h": -time.Hour,
	} {
		if got, err := text.Duration(s); err != nil || got != want {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "1y", "d", "1d-1h", "1", "1.5d", "99999999w"} {
		if got, err := text.Duration(s); err == nil {
			t.Errorf("%q: %v", s, got)
		}
	}
}
