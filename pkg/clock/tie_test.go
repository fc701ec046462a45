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

func TestATimeKeepsItsAge(t *testing.T) {
	at := Time(Monotonic() - int64(time.Hour))
	if age := time.Since(at); age < time.Hour || age > time.Hour+time.Minute {
		t.Errorf("an hour ago is %v ago", age)
	}
	if again := Reset(at); again.Sub(at).Abs() > time.Minute {
		t.Errorf("%v is %v now, and the clock was not set", at, again)
	}
	for _, read := range []time.Time{{}, time.Unix(0, 5)} {
		if got := Reset(read); !got.Equal(read) {
			t.Errorf("%v became %v", read, got)
		}
	}
}
