// Package export delivers finished operations: over OTLP gRPC, or to a file of OTLP JSON lines.
//
// An Exporter sends once and says what came of it; a Queue stands in front of each
// and does the rest (pkg/queue).
package export

import (
	"context"
	"math"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/queue"
)

// Exporter sends spans to one destination. It is used by one goroutine at a time.
type Exporter interface {
	// Export sends the spans as one. Its errors are those of queue.Sender.
	Export(ctx context.Context, spans []*tracepb.ResourceSpans) error
	// Shutdown lets go of what the exporter holds. It is called once, at the end.
	Shutdown(ctx context.Context) error
}

// encodedExporter is one that sends operations as they wait, so that they need not be decoded.
type encodedExporter interface {
	exportEncoded(ctx context.Context, operations [][]byte) error
}

// Queue holds finished operations until their destination has taken them, as TracesData. One
// that arrives twice has the same ids.
type Queue struct{ *queue.Queue }

// NewQueue starts a queue in front of e, which it owns from now on; nil: nothing is wanted. Close ends it.
func NewQueue(e Exporter, o queue.Options) *Queue {
	return &Queue{queue.New(senderOf(e), o)}
}

// SetExporter sends what waits, and all that comes, by e from now on: see queue.SetSender.
func (q *Queue) SetExporter(e Exporter) { q.SetSender(senderOf(e)) }

// Enqueue hands over one operation and reports whether it was taken. It does not block; what is
// not taken is counted. The spans are not kept: they may change afterwards.
func (q *Queue) Enqueue(spans []*tracepb.ResourceSpans) bool {
	if !q.Admits() {
		return false
	}
	data, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil { // a text that is not UTF-8
		q.Drop(queue.Invalid)
		return false
	}
	start, end := extent(spans)
	return q.Add(queue.Item{Start: start, End: end, Data: data})
}

// sender is an exporter of encoded operations.
type sender struct{ Exporter }

func senderOf(e Exporter) queue.Sender {
	if e == nil {
		return nil
	}
	return sender{e}
}

// Send makes one request of operations. Encoded TracesData, one after another, are one TracesData
// that holds them all (protobuf: repeated fields are joined).
func (s sender) Send(ctx context.Context, operations [][]byte) error {
	if e, can := s.Exporter.(encodedExporter); can {
		return e.exportEncoded(ctx, operations)
	}
	var all tracepb.TracesData
	for _, data := range operations {
		if err := (proto.UnmarshalOptions{Merge: true}).Unmarshal(data, &all); err != nil {
			return &queue.RejectedError{Err: err}
		}
	}
	return s.Export(ctx, all.GetResourceSpans())
}

// Readings are the metrics of a destination, at a moment.
func Readings(s queue.Stats, now time.Time) []meter.Reading {
	const destination = "destination"
	failing := 0.0
	if !s.FailingSince.IsZero() {
		failing = max(0, now.Sub(s.FailingSince).Seconds())
	}
	all := []meter.Reading{
		meter.Level("export_queue_operations", "Operations that wait for a destination, those on their way included.", s.Waiting, destination, s.Name),
		meter.Level("export_queue_bytes", "What they hold.", s.WaitingBytes, destination, s.Name),
		meter.Count("export_operations_sent_total", "Operations that have arrived.", s.Sent, destination, s.Name),
		meter.Count("export_retries_total", "Requests that failed and were, or will be, sent again.", s.Retries, destination, s.Name),
		meter.Count("export_spans_refused_total", "Spans that the destination refused of operations that it took.", s.RefusedSpans, destination, s.Name),
		meter.Count("export_panics_total", "Panics of an exporter that were survived.", s.Panics, destination, s.Name),
		meter.Level("export_failing_seconds", "For how long nothing has arrived although it was tried; 0 while all is well.", failing, destination, s.Name),
	}
	reasons := []queue.Reason{queue.Full, queue.Rejected, queue.TooLarge, queue.Closed}
	if disk := s.Spool; disk != nil {
		reasons = append(reasons, queue.SpoolFull, queue.SpoolOld, queue.Damaged)
		all = append(all,
			meter.Count("spool_operations_written_total", "Operations that were written to the spool.", s.Spooled, destination, s.Name),
			meter.Count("spool_operations_unwritten_total", "Operations that could not be written, and waited in memory.", s.Unspooled, destination, s.Name),
			meter.Level("spool_bytes", "What the spool holds, exported or not.", disk.Bytes, destination, s.Name),
			meter.Level("spool_waiting_bytes", "How much of that waits for the destination.", disk.Waiting, destination, s.Name))
	}
	return append(all, meter.ByReason("export_operations_dropped_total", "Kept operations that did not arrive.", s.Dropped, reasons, destination, s.Name)...)
}

// extent is the first and the last instant of an operation.
func extent(spans []*tracepb.ResourceSpans) (start, end time.Time) {
	from, to := uint64(math.MaxInt64), uint64(0)
	for _, rs := range spans {
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				from = min(from, s.GetStartTimeUnixNano())
				to = max(to, min(s.GetEndTimeUnixNano(), math.MaxInt64))
			}
		}
	}
	return time.Unix(0, int64(min(from, to))), time.Unix(0, int64(to))
}
