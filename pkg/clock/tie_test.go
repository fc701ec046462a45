package clock

import (
	"testing"
	"time"
)

func TestAStepIsTiedAtOnce(t *testing.T) {
	const noon = int64(1_800_000_000e9)
	for name, test := range map[string]struct {
		later, step time.Duration
		want        bool
	}{
		"at once":                      {later: time.Millisecond},
		"later":                        {later: 101 * time.Millisecond, want: true},
		"an hour ahead":                {time.Millisecond, time.Hour, true},
		"ten years back":               {time.Millisecond, -10 * 365 * 24 * time.Hour, true},
		"suspended for a second":       {time.Millisecond, time.Second, true},
		"a reader that lost its CPU":   {time.Millisecond, 2 * time.Millisecond, false},
		"as much, the other way":       {time.Millisecond, -2 * time.Millisecond, false},
		"the least step that NTP does": {time.Millisecond, -128 * time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			tie := Tie{mono: 5e9, wall: noon}
			if got := tie.Due(5e9+int64(test.later), noon+int64(test.later+test.step)); got != test.want {
				t.Errorf("it is told: %v", got)
			}
		})
	}
	if _, _, tell := new(Tie).Again(); !tell {
		t.Error("the first is not told")
	}
}

// steered bounds how far the system's clock is adjusted during a test.
const steered = time.Second

func TestATimeKeepsItsAge(t *testing.T) {
	before := time.Now().Add(-time.Hour - steered)
	at := Time(Monotonic() - int64(time.Hour))
	if after := time.Now().Add(-time.Hour + steered); at.Before(before) || at.After(after) {
		t.Errorf("an hour ago is %v, want a time between %v and %v", at, before, after)
	}
	if again := Reset(at); again.Sub(at).Abs() > steered {
		t.Errorf("%v is %v now, and the clock was not set", at, again)
	}
	for _, read := range []time.Time{{}, time.Unix(0, 5)} {
		if got := Reset(read); !got.Equal(read) {
			t.Errorf("%v became %v", read, got)
		}
	}
}
