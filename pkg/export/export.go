// Package export delivers the spans of operations. Each destination, an OTLP endpoint or a JSON file, has a Queue.
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

// Queue holds operations, each encoded as TracesData.
type Queue struct{ *queue.Queue }

// NewQueue starts a queue that owns its destination; nil drops operations. Close stops it.
func NewQueue(to queue.Sender, o queue.Options) *Queue { return &Queue{queue.New(to, o)} }

// Enqueue encodes and queues spans if there is room.
func (q *Queue) Enqueue(spans *tracepb.ResourceSpans, encode func() ([]byte, error)) bool {
	if !q.Admits() {
		return false
	}
	data, err := encode()
	if err != nil {
		q.Drop(queue.Invalid)
		return false
	}
	start, end := extent(spans)
	return q.Add(queue.Item{Start: start, End: end, Data: data})
}

// Send sends one request without a queue. Its errors are those of queue.Sender.
func Send(ctx context.Context, to queue.Sender, spans []*tracepb.ResourceSpans) error {
	data, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return &queue.RejectedError{Err: err}
	}
	return to.Send(ctx, [][]byte{data})
}

// Readings returns the metrics of a destination.
func Readings(s queue.Stats, now time.Time) []meter.Reading {
	at := []string{"destination", s.Name}
	failing := 0.0
	if !s.FailingSince.IsZero() {
		failing = max(0, now.Sub(s.FailingSince).Seconds())
	}
	all := []meter.Reading{
		meter.Level("export_queue_operations", "Operations that wait for a destination in memory, with those being sent.",
			s.Waiting, at...),
		meter.Level("export_queue_bytes", "Bytes of operations that wait for a destination in memory.",
			s.WaitingBytes, at...),
		meter.Count("export_operations_sent_total", "Delivered operations.", s.Sent, at...),
		meter.Count("export_retries_total", "Requests sent again.", s.Retries, at...),
		meter.Count("export_spans_refused_total", "Spans that the destination rejected, of operations that it accepted.",
			s.RefusedSpans, at...),
		meter.Count("export_panics_total", "Recovered panics.", s.Panics, at...),
		meter.Level("export_failing_seconds", "Time since the last delivery; 0 while export works.", failing, at...),
	}
	reasons := []queue.Reason{queue.Full, queue.Rejected, queue.TooLarge, queue.Closed}
	if disk := s.Spool; disk != nil {
		reasons = append(reasons, queue.SpoolFull, queue.SpoolOld, queue.Damaged)
		all = append(all,
			meter.Count("spool_operations_written_total", "Operations written to the spool.", s.Spooled, at...),
			meter.Count("spool_operations_unwritten_total", "Operations that a full or failed disk left in memory.",
				s.Unspooled, at...),
			meter.Level("spool_bytes", "Size of the spool.", disk.Bytes, at...),
			meter.Level("spool_waiting_bytes", "Bytes of the spool that wait for the destination.", disk.Waiting, at...))
	}
	return append(all, meter.ByReason("export_operations_dropped_total", "Sampled operations that were not delivered.",
		s.Dropped, reasons, at...)...)
}

func extent(spans *tracepb.ResourceSpans) (start, end time.Time) {
	from, to := uint64(math.MaxInt64), uint64(0)
	for _, ss := range spans.GetScopeSpans() {
		for _, s := range ss.GetSpans() {
			from = min(from, s.GetStartTimeUnixNano())
			to = max(to, min(s.GetEndTimeUnixNano(), math.MaxInt64))
		}
	}
	return time.Unix(0, int64(min(from, to))), time.Unix(0, int64(to))
}
