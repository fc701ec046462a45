package probe

import (
	"slices"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/test/harness"
)

func TestLingeringIsShortWhereTheNextCallIsFarAndLongWhereItIsNear(t *testing.T) {
	const most = 30 * time.Second
	for name, test := range map[string]struct {
		gaps          []time.Duration
		atLeast, most time.Duration
	}{
		"nothing is known":          {nil, 5 * time.Second, 5 * time.Second},
		"a pod every 3 s":           {[]time.Duration{3 * time.Second, 3 * time.Second, 3 * time.Second}, 3 * time.Second, 4 * time.Second},
		"a CronJob every minute":    {[]time.Duration{5 * time.Second, 55 * time.Second, 5 * time.Second, 55 * time.Second}, time.Second, time.Second},
		"a pod an hour":             {[]time.Duration{time.Hour, time.Hour}, time.Second, time.Second},
		"calls of one pod only":     {[]time.Duration{time.Millisecond, 20 * time.Millisecond}, 5 * time.Second, 5 * time.Second},
		"bursts with pauses":        {[]time.Duration{2 * time.Second, 2 * time.Second, 2 * time.Second, time.Hour}, 2 * time.Second, 3 * time.Second},
		"a burst, long ago":         {append(times(4, 2*time.Second), times(gapsKept, time.Minute)...), time.Second, time.Second},
		"rare, but the last was so": {append(times(15, time.Hour), 2*time.Second), time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			l := linger{most: most}
			for _, gap := range test.gaps {
				l.note(gap)
			}
			if got := l.length(); got < test.atLeast || got > test.most {
				t.Errorf("it lingers for %s, want %s to %s", got, test.atLeast, test.most)
			}
		})
	}
	l := linger{most: 200 * time.Millisecond}
	harness.Equal(t, l.length(), l.most, "it lingers for")
}

func times(n int, gap time.Duration) (gaps []time.Duration) {
	for range n {
		gaps = append(gaps, gap)
	}
	return gaps
}

// The alert on a probe that is not attached is not for one that an operator switched off.
func TestAProbeThatIsOffIsNotCalledDetached(t *testing.T) {
	for off, want := range map[bool]bool{false: true, true: false} {
		readings := NewSource(Options{Off: off}, nil).Stats().Readings
		has := slices.ContainsFunc(readings, func(r meter.Reading) bool { return r.Name == "probe_attached" })
		harness.Equal(t, has, want, "it is off:", off, "it has the reading")
	}
}
