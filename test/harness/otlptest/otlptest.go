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
	traces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces([]byte(json))
	harness.Check(tb, err)
	wire, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(traces)
	harness.Check(tb, err)
	return wire
}
