package settings

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/test/harness"
)

// Whatever judges a live node judges its recording: nothing is lost on the way through the
// header, and what no options can be is not obeyed.
func TestSettingsThroughARecording(t *testing.T) {
	o, err := config.Parse("f.toml", []byte(`
[limits]
settle = "3s"
processes = 1000
operations = 100
images = 500
facts = 300
min_span = "2ms"
[slow]
command = "1s"
call = "3s"
agent = "4s"
lock = "5s"
hung = "6s"
first_connection = "9s"
rule = [{ command = "ip*", threshold = "7s" }]
[sampling]
ratio = 0.5
per_second = 7
keep = ["failed"]
annotation_namespaces = ["shop"]
rule = [{ namespace = "shop*", ratio = 0.25 }]
[trace]
fold_commands = true
[relay]
listen = "127.0.0.1:4319"
upstream = "http://127.0.0.1:4317"
wait = "2s"
[resource]
attributes = { a = "b" }
`))
	harness.Check(t, err)
	want := Of(o, "boot", "test")
	for name, v := range map[string]any{"Timeline": want.Timeline, "Judge": want.Judge} {
		for i := range reflect.TypeOf(v).NumField() {
			if field := reflect.TypeOf(v).Field(i).Name; reflect.ValueOf(v).Field(i).IsZero() && field != "All" {
				t.Errorf("%s.%s is not set by this test: teach it", name, field)
			}
		}
	}
	if !want.Fold {
		t.Error("Fold is not set by this test")
	}
	header := harness.Must(want.Header())(t)
	got, said, err := In(header)
	got.options = want.options // only those of the header are the same
	if err != nil || len(said) > 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %q\n got %+v\nwant %+v", err, said, got, want)
	}
	// The keys are those of 0.2, which reads what this version records.
	var carried map[string]map[string]json.RawMessage
	before := map[string]string{
		"timeline": "Facts Hung Images MaxHold MinSpan Operations Processes Settle Wait",
		"judge":    "Agent All Annotations Baseline Call Command Floor Keep Lock Namespaces PerSecond Ratio Rules",
		"node":     "Arch Attributes Cluster Host Instance Name OS Version",
	}
	options := bytes.Replace(header.Options, []byte(`"fold":true,`), nil, 1)
	harness.Check(t, json.Unmarshal(options, &carried))
	for section, keys := range before {
		harness.Equal(t, strings.Join(slices.Sorted(maps.Keys(carried[section])), " "), keys, section, "has")
	}
	harness.Equal(t, string(carried["judge"]["Rules"]), `[{"Pattern":"ip*","Threshold":7000000000}]`, "a rule is")

	// Options that have no effect any more have one in recordings that were made with them.
	other := `{"timeline":{"MaxHold":300000000000},"judge":{"Floor":7000000}}`
	got, said, err = In(record.Header{Options: []byte(other)})
	if err != nil || len(said) > 0 || got.Timeline.MaxHold != 5*time.Minute || got.Judge.Floor != 7*time.Millisecond {
		t.Errorf("%v, %q: %+v %+v", err, said, got.Timeline, got.Judge)
	}

	got, said, err = In(record.Header{Options: []byte(`{"timeline":{"MaxHold":-1,"Processes":100000000,"Operations":100000000,"Spans":-3}}`)})
	if err != nil || got.Timeline != Of(config.Default(), "", "test").Timeline {
		t.Errorf("%v: %+v", err, got.Timeline)
	}
	if all := strings.Join(said, "\n"); len(said) != 5 || !strings.Contains(all, "limits.operations = 100000000 cannot be; the default 1024 is taken") {
		t.Errorf("it is said %q", said)
	}

	got, said, err = In(record.Header{Options: []byte(`{"timeline":{"Spans":100}}`)})
	if err != nil || len(said) > 0 || got.Timeline.Images != 100 || got.Timeline.Facts != 50 {
		t.Errorf("of a recording with one bound for images and facts: %v, %q, %+v", err, said, got.Timeline)
	}
}
