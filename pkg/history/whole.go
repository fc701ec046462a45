package history

import (
	"fmt"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/control"
)

const (
	// WholeOperations bounds the number of operations held with spans.
	WholeOperations = 512
	// WholeBytes bounds their compressed spans: about 300 operations of 80 KB, compressed to an eighth.
	WholeBytes = 4 << 20
	// largestWhole bounds an operation held with spans, in bytes before compression, which lasts 40 ms for this
	// size.
	largestWhole = 4 << 20
)

// wholes holds the last slow and failed operations by trace id. History.mu guards it.
type wholes struct {
	held      []whole
	size      int
	forgotten map[string]uint64
}

type whole struct {
	traces []string // in hex; several calls may have several
	data   []byte   // compressed tracepb.TracesData
}

func newWholes() wholes { return wholes{forgotten: map[string]uint64{}} }

func (w *wholes) add(op whole) {
	w.held = append(w.held, op)
	w.size += op.size()
	for len(w.held) > WholeOperations || w.size > WholeBytes {
		why := "whole_operations"
		if w.size > WholeBytes {
			why = "whole_bytes"
		}
		w.forgotten[why]++
		w.size -= w.held[0].size()
		w.held[0] = whole{}
		w.held = w.held[1:]
	}
}

// size estimates the memory of an operation, including its entry and trace ids.
func (op whole) size() int { return cap(op.data) + 64 + 48*len(op.traces) }

// Keep stores the spans of an operation under the trace ids of its lines, in hex.
func (h *History) Keep(traces []string, spans *tracepb.ResourceSpans) {
	if len(traces) == 0 {
		return
	}
	op := whole{traces: traces}
	if proto.Size(spans) <= largestWhole {
		op.data = h.pack(spans)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if op.data == nil {
		h.whole.forgotten["large"]++
		return
	}
	h.whole.add(op)
}

// Whole returns the spans of an operation, an encoded TracesData with one ResourceSpans per Keep. The error wraps
// control.ErrNotRemembered.
func (h *History) Whole(trace string) (all []byte, err error) {
	var found []whole
	h.mu.Lock()
	for _, op := range h.whole.held {
		for _, id := range op.traces {
			if id == trace {
				found = append(found, op)
				break
			}
		}
	}
	since := h.since
	h.mu.Unlock()
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: only the last slow and failed operations are held whole, and %.64q is none of them (there is a line for each operation since %s)",
			control.ErrNotRemembered, trace, since.Format("2006-01-02 15:04:05Z"))
	}
	for _, op := range found {
		data, err := unpack(op.data)
		if err != nil {
			return nil, fmt.Errorf("read remembered spans: %w", err)
		}
		all = append(all, data...) // concatenated messages are one message
	}
	return all, nil
}

// pack encodes and compresses spans; nil if they cannot be encoded.
func (h *History) pack(spans *tracepb.ResourceSpans) []byte {
	wire, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{spans}})
	if err != nil {
		return nil
	}
	return h.packer.pack(wire)
}
