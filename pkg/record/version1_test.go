package record

import (
	"bytes"
	"os"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

// The version 1 files come from real nodes and are never regenerated.
func TestVersion1(t *testing.T) {
	r := harness.Must(Open(t.Context(), "testdata/version1.rec"))(t)
	defer func() { _ = r.Close() }()
	events := harness.Must(all(r))(t)
	got := rewrite(t, r.Header(), events)
	want := harness.Must(os.ReadFile("testdata/version1-as-2.rec"))(t)
	if !bytes.Equal(got, want) {
		a, b := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
		for i := range min(len(a), len(b)) {
			if !bytes.Equal(a[i], b[i]) {
				t.Errorf("line %d is now\n%s\nand was\n%s", i+1, a[i], b[i])
			}
		}
		t.Fatalf("%d lines, want %d", len(a), len(b))
	}
	for _, kind := range event.Kinds() {
		if !bytes.Contains(want, []byte(`,"`+kind+`":{`)) {
			t.Logf("no %s in it: it is younger than version 1", kind)
		}
	}
}
