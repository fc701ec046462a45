package runtime

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/cniscope/cniscope/test/harness"
)

func TestTheRuntimeIsAskedOverItsPipe(t *testing.T) {
	name := fmt.Sprintf(`\\.\pipe\cniscope-test-%d`, os.Getpid())
	listener := harness.Must(winio.ListenPipe(name, nil))(t)
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	// wine connects the first client to the instance that only reserves the name
	if first, err := winio.DialPipe(name, nil); err == nil {
		_ = first.Close()
	}
	conn := harness.Must(Dial(name))(t)
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
}
