package otlp

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// Encoded is gRPC's codec of requests that stay encoded: a client sends [][]byte, which must not change afterwards, and a
// server receives into a *[]byte. gRPC's own would copy them into a buffer of 1 MiB if they have more than 32 KiB, as a
// pod's spans do.
type Encoded struct{}

// Marshal returns the parts of a message, one after another.
func (Encoded) Marshal(v any) (message mem.BufferSlice, err error) {
	parts, ok := v.([][]byte)
	if !ok {
		return nil, fmt.Errorf("a request is encoded before it is sent, and this one is %T", v)
	}
	for _, part := range parts {
		message = append(message, mem.SliceBuffer(part))
	}
	return message, nil
}

// Unmarshal copies a message into a *[]byte, and decodes any other as gRPC does by itself.
func (Encoded) Unmarshal(data mem.BufferSlice, v any) error {
	if message, ok := v.(*[]byte); ok {
		*message = data.Materialize()
		return nil
	}
	return encoding.GetCodecV2(proto.Name).Unmarshal(data, v)
}

// Name is empty, so that the content type is what it is without a codec: application/grpc.
func (Encoded) Name() string { return "" }
