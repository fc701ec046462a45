package show

import (
	"io"
	"iter"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Page is to come.
func Page(io.Writer, iter.Seq[*tracepb.ResourceSpans]) error { return nil }
