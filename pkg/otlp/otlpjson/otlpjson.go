// Package otlpjson encodes spans as OTLP JSON.
package otlpjson

import (
	"bytes"
	"fmt"

	"go.opentelemetry.io/collector/pdata/ptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Lines encodes each ResourceSpans as one line.
func Lines(spans []*tracepb.ResourceSpans) ([]byte, error) {
	var (
		lines bytes.Buffer
		from  ptrace.ProtoUnmarshaler
		to    ptrace.JSONMarshaler
	)
	for _, rs := range spans {
		wire, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{rs}})
		var traces ptrace.Traces
		if err == nil {
			traces, err = from.UnmarshalTraces(wire)
		}
		var line []byte
		if err == nil {
			line, err = to.MarshalTraces(traces)
		}
		if err != nil {
			return nil, fmt.Errorf("encode spans: %w", err)
		}
		lines.Write(line)
		lines.WriteByte('\n')
	}
	return lines.Bytes(), nil
}
