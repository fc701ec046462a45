package otlp

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// Encoded is a gRPC codec: a client sends [][]byte, which must not change later; a server receives into *[]byte.
// gRPC's own codec copies messages above 32 KiB.
type Encoded struct{}

// Marshal returns the concatenated parts of a message.
func (Encoded) Marshal(v any) (message mem.BufferSlice, err error) {
	parts, ok := v.([][]byte)
	if !ok {
		return nil, fmt.Errorf("cannot send %T: a request must be encoded first", v)
	}
	for _, part := range parts {
		message = append(message, mem.SliceBuffer(part))
	}
	return message, nil
}

// Unmarshal copies into a *[]byte, and decodes any other type as protobuf.
func (Encoded) Unmarshal(data mem.BufferSlice, v any) error {
	if message, ok := v.(*[]byte); ok {
		*message = data.Materialize()
		return nil
	}
	return encoding.GetCodecV2(proto.Name).Unmarshal(data, v)
}

// Name is empty, so the content type stays application/grpc.
func (Encoded) Name() string { return "" }
