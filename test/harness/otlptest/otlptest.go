// Package otlptest holds OTLP servers for tests, and encodes spans.
package otlptest

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/cniscope/cniscope/test/harness"
)

// Encoded returns OTLP JSON as an encoded TracesData.
func Encoded(tb testing.TB, json string) []byte {
	tb.Helper()
	traces := harness.Must((&ptrace.JSONUnmarshaler{}).UnmarshalTraces([]byte(json)))(tb)
	wire := harness.Must((&ptrace.ProtoMarshaler{}).MarshalTraces(traces))(tb)
	return wire
}
