//go:build linux

package nri

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/net/multiplex"
	"github.com/containerd/ttrpc"

	"github.com/cniscope/cniscope/test/harness"
)

// raw is the runtime's side of one connection, for misbehavior of a runtime.
type raw struct {
	mux        multiplex.Mux
	plugin     api.PluginService
	registered chan string // "NN-name"
}

// speak accepts registrations, and does nothing else by itself.
func speak(t *testing.T, c net.Conn) *raw {
	t.Helper()
	r := &raw{mux: multiplex.Multiplex(c), registered: make(chan string, 1)}
	t.Cleanup(func() { r.mux.Close() })
	out := harness.Must(r.mux.Open(multiplex.PluginServiceConn))(t)
	r.plugin = api.NewPluginClient(ttrpc.NewClient(out))
	in := harness.Must(r.mux.Listen(multiplex.RuntimeServiceConn))(t)
	server := harness.Must(ttrpc.NewServer())(t)
	t.Cleanup(func() { server.Close() })
	api.RegisterRuntimeService(server, r)
	go func() { _ = server.Serve(context.Background(), in) }()
	return r
}

func (r *raw) RegisterPlugin(_ context.Context, q *api.RegisterPluginRequest) (*api.Empty, error) {
	r.registered <- q.GetPluginIdx() + "-" + q.GetPluginName()
	return &api.Empty{}, nil
}

func (r *raw) UpdateContainers(context.Context, *api.UpdateContainersRequest) (*api.UpdateContainersResponse, error) {
	return &api.UpdateContainersResponse{}, nil
}

func (r *raw) complete(config string, present ...*api.PodSandbox) (*api.ConfigureResponse, error) {
	<-r.registered
	ctx := context.Background()
	response, err := r.plugin.Configure(ctx,
		&api.ConfigureRequest{Config: config, RuntimeName: "containerd", RuntimeVersion: "v1.7.35"})
	if err != nil {
		return nil, err
	}
	_, err = r.plugin.Synchronize(ctx, &api.SynchronizeRequest{Pods: present})
	return response, err
}

func listen(t *testing.T, dir string, serve func(net.Conn)) net.Listener {
	t.Helper()
	l := harness.Must(net.Listen("unix", filepath.Join(dir, "nri.sock")))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return l
}
