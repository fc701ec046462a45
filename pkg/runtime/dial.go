package runtime

import (
	"context"

	"github.com/containerd/containerd/v2/pkg/dialer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// Dial connects to the runtime's socket or pipe on the first request. containerd's client library would add
// megabytes.
func Dial(address string, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient(target(address), append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dialer.ContextDialer),
	}, more...)...)
}

// InNamespace sets the containerd namespace of requests.
func InNamespace(ctx context.Context, name string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "containerd-namespace", name)
}
