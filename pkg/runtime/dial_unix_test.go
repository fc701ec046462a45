//go:build unix

package runtime

import (
	"net"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/cniscope/cniscope/test/harness"
)

func TestTheRuntimeIsAskedWhateverItsSocketIsCalled(t *testing.T) {
	for _, name := range []string{"a.sock", "a%zzb.sock", "a#b.sock", "a?b.sock", "a b.sock", "ä:1.sock"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			listener := harness.Must(net.Listen("unix", path))(t)
			server := grpc.NewServer()
			grpc_health_v1.RegisterHealthServer(server, health.NewServer())
			go func() { _ = server.Serve(listener) }()
			defer server.Stop()
			conn := harness.Must(Dial(path))(t)
			defer conn.Close()
			if _, err := grpc_health_v1.NewHealthClient(conn).
				Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil {
				t.Error(err)
			}
		})
	}
}
