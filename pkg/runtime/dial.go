package runtime

import (
	"context"

	"github.com/containerd/containerd/v2/pkg/dialer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// Dial connects to the runtime's socket (a pipe on Windows) when something is asked for the first time. It is
// asked by the stubs of its API: containerd's client library brings its snapshotters, image stores and content
// with it, which are megabytes of memory.
func Dial(address string, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient(target(address), append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dialer.ContextDialer),
	}, more...)...)
}

// InNamespace asks containerd for what is in one of its namespaces.
func InNamespace(ctx context.Context, name string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "containerd-namespace", name)
}
