package main

import (
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/otlptest"
	"github.com/cniscope/cniscope/test/harness/spelled"
)

// Doctor's report is what doctor prints and what /v1/doctor answers to readers.
func TestAnEndpointThatRepeatsTheCredentialsIsNotQuotedByDoctor(t *testing.T) {
	const token = "Xq7CanaryTokenZ9t4421"
	backend := &otlptest.Echo{}
	for _, spell := range spelled.Ways() {
		backend.Ways = append(backend.Ways, spell)
	}
	o := harness.Must(config.Parse("test.toml", []byte(`[export.otlp]
endpoint = "http://`+otlptest.Backend(t, "127.0.0.1:0", backend)+`"
headers = { authorization = "Bearer `+token+`" }
[runtime]
socket = "`+t.TempDir()+`/none.sock"
[nri]
enabled = false
`)))(t)
	clean := func(what, text string) {
		t.Helper()
		for way := range spelled.Ways() {
			if window, is := spelled.Seen(text, way, token); is {
				t.Errorf("%s: %q leaves in %s: %s", way, window, what, text)
			}
		}
	}
	flags := doctorFlags{answers: 5 * time.Second, kubelet: "127.0.0.1:1"}
	for range backend.Ways {
		clean("the test span", flags.options(o).Send(t.Context()).Error())
	}
	var report strings.Builder
	harness.Check(t, doctor.Examine(t.Context(), flags.options(o)).Text(&report))
	if !strings.Contains(report.String(), "invalid credentials") || !strings.Contains(report.String(), "[export.otlp] headers") {
		t.Errorf("the cause and the remedy are missing:\n%s", report.String())
	}
	clean("doctor", report.String())
}
