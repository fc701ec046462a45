//go:build linux

package standin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"
)

const service = "cnipb.Cni"

type settings struct {
	Agent  string // its address
	Inject *Injection
	// Retry makes the plugin retry if the agent died.
	Retry bool
	IPAM  struct{ Type string }
	// Limit bounds the plugin's wait; 0 for none.
	Limit time.Duration
}

// plug is the plugin, which only forwards.
func plug() error {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var conf settings
	if err := json.Unmarshal(text, &conf); err != nil {
		return err
	}
	command := os.Getenv("CNI_COMMAND")
	if command != "ADD" && command != "DEL" {
		return nil
	}
	request, err := structpb.NewStruct(map[string]any{
		"container_id": os.Getenv("CNI_CONTAINERID"), "netns": os.Getenv("CNI_NETNS"), "ifname": os.Getenv("CNI_IFNAME"),
		"args": os.Getenv("CNI_ARGS"), "path": os.Getenv("CNI_PATH"), "network_configuration": string(text),
	})
	if err != nil {
		return err
	}
	reply, err := call(conf, command, request)
	if err != nil && conf.Retry {
		reply, err = call(conf, command, request)
	}
	switch {
	case err == nil:
		fmt.Print(reply.Fields["result"].GetStringValue())
	case command == "DEL": // no pod remains because of a dead agent
	default:
		fmt.Printf(`{"cniVersion":"1.0.0","code":11,"msg":%q}`, err.Error())
		os.Exit(1)
	}
	return nil
}

func call(conf settings, command string, request *structpb.Struct) (*structpb.Struct, error) {
	network, address, _ := strings.Cut(conf.Agent, " ")
	again := backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1, MaxDelay: 20 * time.Millisecond}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: time.Minute}),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx := context.Background()
	if conf.Limit > 0 {
		limited, cancel := context.WithTimeout(ctx, conf.Limit)
		defer cancel()
		ctx = limited
	}
	method := map[string]string{"ADD": "CmdAdd", "DEL": "CmdDel"}[command]
	reply := &structpb.Struct{}
	return reply, conn.Invoke(ctx, "/"+service+"/"+method, request, reply, grpc.WaitForReady(conf.Retry))
}
