package ready

import (
	"github.com/containerd/containerd/v2/pkg/dialer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// dial connects to the runtime's named pipe when it is asked for the first time.
func dial(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient(dialer.DialAddress(address), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dialer.ContextDialer))
}
