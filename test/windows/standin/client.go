//go:build windows

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"sync"
	"time"

	winio "github.com/Microsoft/go-winio"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// client calls the CRI, as crictl does:
//
//	client -pipe PIPE greet connects only: wine blocks the first connection for ever
//	client -pipe PIPE version
//	client -pipe PIPE run NAMESPACE NAME... runs pods concurrently, and prints a result for each
func client(args []string) error {
	flags := flag.NewFlagSet("client", flag.ContinueOnError)
	pipe := flags.String("pipe", `\\.\pipe\containerd-containerd`, "the container runtime's pipe")
	within := flags.Duration("within", 2*time.Minute, "how long all of it may take")
	if err := flags.Parse(args); err != nil {
		return err
	}
	conn, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return winio.DialPipeContext(ctx, *pipe) }))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), *within)
	defer cancel()
	runtime := cri.NewRuntimeServiceClient(conn)
	switch rest := flags.Args(); {
	case len(rest) == 1 && rest[0] == "greet":
		c, err := winio.DialPipeContext(ctx, *pipe)
		if err == nil {
			err = c.Close()
		}
		return err
	case len(rest) == 1 && rest[0] == "version":
		v, err := runtime.Version(ctx, &cri.VersionRequest{})
		fmt.Println(v.GetRuntimeName(), v.GetRuntimeVersion())
		return err
	case len(rest) > 2 && rest[0] == "run":
		var all sync.WaitGroup
		for _, name := range rest[2:] {
			all.Go(func() { runPod(ctx, runtime, rest[1], name) })
		}
		all.Wait()
		return nil
	}
	return errors.New("say greet, version, or run NAMESPACE NAME and more names")
}

func runPod(ctx context.Context, runtime cri.RuntimeServiceClient, namespace, name string) {
	r, err := runtime.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: &cri.PodSandboxConfig{
		Metadata:     &cri.PodSandboxMetadata{Name: name, Namespace: namespace, Uid: "uid-of-" + name},
		LogDirectory: `C:\logs`,
	}})
	if err != nil {
		fmt.Println(name, "error", err)
		return
	}
	fmt.Println(name, r.GetPodSandboxId())
}
