package export

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// asEncoded is gRPC's codec of requests that are encoded already: [][]byte, which must not change afterwards. gRPC's own would
// copy them into a buffer of 1 MiB if they have more than 32 KiB, as a pod's spans do.
type asEncoded struct{}

// Marshal returns the parts of a request, one after another.
func (asEncoded) Marshal(v any) (request mem.BufferSlice, err error) {
	parts, ok := v.([][]byte)
	if !ok {
		return nil, fmt.Errorf("a request is encoded before it is sent, and this one is %T", v)
	}
	for _, part := range parts {
		request = append(request, mem.SliceBuffer(part))
	}
	return request, nil
}

// Unmarshal decodes an answer, as gRPC does by itself.
func (asEncoded) Unmarshal(data mem.BufferSlice, v any) error {
	return encoding.GetCodecV2(proto.Name).Unmarshal(data, v)
}

// Name is empty, so that the content type is what it is without a codec: application/grpc.
func (asEncoded) Name() string { return "" }
