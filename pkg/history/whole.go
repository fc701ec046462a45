package history

import (
	"fmt"
	"slices"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/trace"
)

const (
	// wholeOperations bounds the operations held with spans.
	wholeOperations = 512
	// wholeBytes bounds compressed spans: about 300 operations of 80 KB, compressed to an eighth.
	wholeBytes = 4 << 20
	// largestWhole bounds an operation's spans in bytes.
	largestWhole = 4 << 20
	// wholeEntry estimates the bytes of an entry without data.
	wholeEntry = 160
)

type spans struct {
	traces []string
	data   []byte // compressed TracesData
}

// Keep stores an operation's spans under the trace ids of its lines, in hex.
func (h *History) Keep(traces []string, all trace.Trace) {
	if len(traces) == 0 {
		return
	}
	var data []byte
	if wire, err := all.Encoded(); err == nil && len(wire) <= largestWhole {
		data = h.packer.pack(wire)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if data == nil {
		h.forgotten["large"]++
		return
	}
	h.whole.Add(spans{traces, data})
	for len(h.whole.Held()) > wholeOperations || h.whole.Size() > wholeBytes {
		why := "whole_operations"
		if h.whole.Size() > wholeBytes {
			why = "whole_bytes"
		}
		h.forgotten[why] += uint64(h.whole.Remove(0, 1))
	}
}

// Whole returns an operation's spans as encoded TracesData. The error wraps control.ErrNotRemembered.
func (h *History) Whole(trace string) (all []byte, err error) {
	var found [][]byte
	h.mu.Lock()
	for _, op := range h.whole.Held() {
		if slices.Contains(op.traces, trace) {
			found = append(found, op.data)
		}
	}
	since := h.since
	h.mu.Unlock()
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: only the last slow and failed operations are held whole, "+
			"and %.64q is none of them (there is a line for each operation since %s)",
			control.ErrNotRemembered, trace, since.Format("2006-01-02 15:04:05Z"))
	}
	for _, packed := range found {
		data, err := unpack(packed)
		if err != nil {
			return nil, fmt.Errorf("read remembered spans: %w", err)
		}
		all = append(all, data...) // concatenated messages are one message
	}
	return all, nil
}
