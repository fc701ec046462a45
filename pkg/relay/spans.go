package relay

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of opentelemetry/proto (collector/trace/v1, trace/v1, common/v1).
const (
	requestResourceSpans = 1
	resourceScopeSpans   = 2
	scopeSpans           = 2

	spanTrace      = 1
	spanID         = 2
	spanState      = 3
	spanName       = 5
	spanStart      = 7
	spanEnd        = 8
	spanAttributes = 9
	spanEvents     = 11
	spanStatus     = 15

	eventName     = 2
	statusMessage = 2
	pairKey       = 1
	pairValue     = 2
	valueString   = 1
)

const (
	// maxSpans bounds a request's spans: twice OTEL_BSP_MAX_EXPORT_BATCH_SIZE.
	maxSpans = 1024
	// maxEvents bounds a span's events (OTEL_SPAN_EVENT_COUNT_LIMIT).
	maxEvents = 128
	maxState  = 512 // required minimum (W3C Trace Context, 3.3.1.5)
)

type span struct {
	trace, id   []byte
	state, name string
	start, end  uint64
	sandbox     string // attribute sandbox.id
	status      string // message of the status
	events      []string
}

type field struct {
	number protowire.Number
	kind   protowire.Type // unexpected kinds are ignored
	bytes  []byte
	value  uint64
}

// fields calls f for each field. Decoding a request of 4 MiB would fill 500 MB.
func fields(message []byte, f func(field) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errMalformed
		}
		message = message[n:]
		one := field{number: number, kind: kind}
		switch kind {
		case protowire.BytesType:
			one.bytes, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			one.value, n = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			one.value, n = protowire.ConsumeFixed64(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return errMalformed
		}
		message = message[n:]
		if err := f(one); err != nil {
			return err
		}
	}
	return nil
}

func within(message []byte, number protowire.Number, f func([]byte) error) error {
	return fields(message, func(one field) error {
		if one.number != number || one.kind != protowire.BytesType {
			return nil
		}
		return f(one.bytes)
	})
}

// spansOf calls f for up to maxSpans spans and returns the number of all. Before an error it may have called f.
func spansOf(request []byte, f func(*span)) (int, error) {
	count := 0
	err := within(request, requestResourceSpans, func(resource []byte) error {
		return within(resource, resourceScopeSpans, func(scope []byte) error {
			return within(scope, scopeSpans, func(message []byte) error {
				if count++; count > maxSpans {
					return nil
				}
				s, err := readSpan(message)
				if err != nil {
					return fmt.Errorf("span %d: %w", count, err)
				}
				f(s)
				return nil
			})
		})
	})
	return count, err
}

func readSpan(message []byte) (*span, error) {
	s := &span{}
	return s, fields(message, func(one field) (err error) {
		kind := protowire.BytesType
		if one.number == spanStart || one.number == spanEnd {
			kind = protowire.Fixed64Type
		}
		if one.kind != kind {
			return nil
		}
		switch one.number {
		case spanTrace:
			s.trace = one.bytes
		case spanID:
			s.id = one.bytes
		case spanState:
			if len(one.bytes) <= maxState {
				s.state = string(one.bytes)
			}
		case spanName:
			s.name = bounded(one.bytes)
		case spanStart:
			s.start = one.value
		case spanEnd:
			s.end = one.value
		case spanAttributes:
			err = s.attribute(one.bytes)
		case spanEvents:
			err = within(one.bytes, eventName, func(name []byte) error {
				if len(s.events) < maxEvents {
					s.events = append(s.events, bounded(name))
				}
				return nil
			})
		case spanStatus:
			err = within(one.bytes, statusMessage, func(message []byte) error {
				s.status = bounded(message)
				return nil
			})
		}
		return err
	})
}

func (s *span) attribute(pair []byte) error {
	var key, value []byte
	err := fields(pair, func(one field) error {
		switch {
		case one.kind != protowire.BytesType:
		case one.number == pairKey:
			key = one.bytes
		case one.number == pairValue:
			return within(one.bytes, valueString, func(text []byte) error {
				value = text
				return nil
			})
		}
		return nil
	})
	if string(key) == "sandbox.id" {
		s.sandbox = bounded(value)
	}
	return err
}

// bounded cuts a text behind the phrases that matter, which follow pod names of up to 253 bytes.
func bounded(text []byte) string { return string(text[:min(len(text), 2048)]) }
