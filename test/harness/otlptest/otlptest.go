// Package otlptest encodes the spans of tests.
package otlptest

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Encoded returns OTLP JSON as an encoded TracesData.
func Encoded(tb testing.TB, json string) []byte {
	tb.Helper()
	traces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces([]byte(json))
	if err != nil {
		tb.Fatal(err)
	}
	wire, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(traces)
	if err != nil {
		tb.Fatal(err)
	}
	return wire
}
