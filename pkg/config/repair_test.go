package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestOptionsFromElsewhereAreRepaired(t *testing.T) {
	o := Default()
	o.Limits.Settle = 3 * time.Second
	o.Slow.Command = 1234567 * time.Nanosecond * 1000
	o.Slow.Rules = []Rule{{"ip*", time.Second}}
	o.Sampling.Keep = nil
	whole := o
	if said := o.repair(); len(said) != 0 || !reflect.DeepEqual(o.Limits, whole.Limits) || !reflect.DeepEqual(o.Slow, whole.Slow) {
		t.Errorf("of good options it is said %q, they became %+v", said, o)
	}

	o.Limits = Limits{Settle: -time.Second, MaxHold: 1 << 62, Processes: 100_000_000, Operations: -1, Images: 1 << 40}
	o.Slow.Rules = make([]Rule, 100_000)
	o.Sampling.PerSecond = -5
	o.Sampling.Keep = []string{strings.Repeat("x", 10_000)}
	o.Resource.Attributes = map[string]string{"a": strings.Repeat("x", 1<<20)}
	said := o.repair()
	if !reflect.DeepEqual(o.Limits, Default().Limits) || len(o.Slow.Rules) != 0 || o.Sampling.PerSecond != Default().Sampling.PerSecond ||
		!reflect.DeepEqual(o.Sampling.Keep, Default().Sampling.Keep) || len(o.Resource.Attributes) != 0 {
		t.Errorf("%+v", o)
	}
	all := strings.Join(said, "\n")
	if len(said) != 11 || len(all) > 2000 || !strings.Contains(all, "limits.processes = 100000000 cannot be; the default 8192 is taken") {
		t.Errorf("%d: %s", len(said), all)
	}
}
