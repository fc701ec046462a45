//go:build linux

package scenarios

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/cniscope/cniscope/test/harness"
)

// The agent behaves like antrea's in the original log: it allocates an address, lists the adapters
// twice, and adds a port, in a fifth of the log's durations.

const (
	method = "/cnipb.Cni/CmdAdd"
	// where passes the address: "unix /path" or "tcp host:port".
	where = "CNISCOPE_AGENT"
)

// remote is a plugin that only calls the agent.
func remote() int {
	conf, err := io.ReadAll(os.Stdin)
	if err != nil || os.Getenv("CNI_COMMAND") != "ADD" {
		return 0
	}
	var c struct {
		Agent string
		Does  string // unusual behavior of this call
	}
	if err := json.Unmarshal(conf, &c); err != nil {
		return 1
	}
	request, _ := structpb.NewStruct(map[string]any{
		"container_id": os.Getenv("CNI_CONTAINERID"), "netns": os.Getenv("CNI_NETNS"), "ifname": os.Getenv("CNI_IFNAME"),
		"args": os.Getenv("CNI_ARGS"), "path": os.Getenv("CNI_PATH"), "network_configuration": string(conf),
	})
	network, address, _ := strings.Cut(c.Agent, " ")
	var wire net.Conn
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1, MaxDelay: 50 * time.Millisecond}, MinConnectTimeout: time.Minute}),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, address)
			wire = c
			return c, err
		}))
	reply := &structpb.Struct{}
	if err == nil {
		defer conn.Close()
		err = conn.Invoke(context.Background(), method, request, reply, grpc.WaitForReady(true))
	}
	if err != nil && c.Does == "dies" { // retry
		err = conn.Invoke(context.Background(), method, request, reply, grpc.WaitForReady(true))
	}
	if err == nil && c.Does == "holds" {
		err = inherit(wire)
	}
	if err != nil {
		fmt.Printf(`{"cniVersion":"1.0.0","code":11,"msg":%q}`, err.Error())
		return 1
	}
	fmt.Print(reply.Fields["result"].GetStringValue())
	return 0
}

// inherit leaves a child with the raw descriptor: os.File would make it blocking for both.
func inherit(c net.Conn) error {
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var kept error
	if err := raw.Control(func(fd uintptr) { _, kept = unix.FcntlInt(fd, unix.F_SETFD, 0) }); err != nil || kept != nil {
		return errors.Join(err, kept)
	}
	return exec.Command("sleep", "45").Start()
}

type agentd struct {
	mu   sync.Mutex
	next int
	bin  string
	mark string // marks that it died once
}

func serveAgent() int {
	network, address, _ := strings.Cut(os.Getenv(where), " ")
	if network == "unix" {
		_ = os.Remove(address) // left by the previous one
	}
	l, err := net.Listen(network, address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	a := &agentd{bin: os.Getenv("CNISCOPE_AGENT_BIN"), mark: address + ".died"}
	if every, err := time.ParseDuration(os.Getenv("CNISCOPE_AGENT_EVERY")); err == nil {
		go a.periodically(every)
	}
	s := grpc.NewServer()
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "cnipb.Cni", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "CmdAdd", Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			request := &structpb.Struct{}
			if err := decode(request); err != nil {
				return nil, err
			}
			return a.do(request.Fields)
		}}},
	}, nil)
	fmt.Println("ready")
	return map[bool]int{true: 1}[s.Serve(l) != nil]
}

func (a *agentd) periodically(every time.Duration) {
	for range time.Tick(every) {
		_ = a.run("", "conntrack", "-L")
	}
}

func (a *agentd) run(container, name string, args ...string) error {
	cmd := exec.Command(filepath.Join(a.bin, name), args...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	a.mu.Lock()
	fmt.Println(cmd.Process.Pid, "for", container, strings.Join(append([]string{name}, args...), " "))
	a.mu.Unlock()
	return cmd.Wait()
}

func (a *agentd) add(request map[string]*structpb.Value) (*structpb.Struct, error) {
	container := request["container_id"].GetStringValue()
	args := map[string]string{}
	for pair := range strings.SplitSeq(request["args"].GetStringValue(), ";") {
		key, value, _ := strings.Cut(pair, "=")
		args[key] = value
	}
	pod := args["K8S_POD_NAME"]
	a.mu.Lock()
	a.next++
	address := fmt.Sprintf("100.96.%d.%d/16", a.next/250, a.next%250+2)
	a.mu.Unlock()
	time.Sleep(15 * time.Millisecond) // allocation
	port := pod[:min(len(pod), 8)] + "-" + hashOf(container)
	if err := a.configureContainerLink(container, port); err != nil {
		return nil, err
	}
	if err := a.run(container, "ovs-ofctl", "add-flow", "br-int", "nw_dst="+strings.TrimSuffix(address, "/16")); err != nil {
		return nil, err
	}
	if err := loUp(request["netns"].GetStringValue()); err != nil {
		return nil, err
	}
	return structpb.NewStruct(map[string]any{
		"result": fmt.Sprintf(`{"cniVersion":"1.0.0","interfaces":[{"name":"eth0","sandbox":%q}],"ips":[{"address":%q,"interface":0}]}`, request["netns"].GetStringValue(), address),
	})
}

func (a *agentd) configureContainerLink(container, port string) error {
	if err := a.getNetAdapter(container, "vEthernet"); err != nil {
		return err
	}
	if err := a.run(container, "ovs-vsctl", "add-port", "br-int", port, "--", "set", "Interface", port, "external_ids:container="+container); err != nil {
		return err
	}
	return a.getNetAdapter(container, port)
}

func (a *agentd) getNetAdapter(container, name string) error {
	return a.run(container, "Get-NetAdapter", "-Name", name)
}

func hashOf(container string) string {
	sum := sha1.Sum([]byte(container))
	return hex.EncodeToString(sum[:])[:6]
}

func loUp(path string) error {
	return harness.Within(path, func() error {
		c, err := netlink.Dial(unix.NETLINK_ROUTE, nil)
		if err != nil {
			return err
		}
		defer c.Close()
		// struct ifinfomsg: lo has index 1.
		info := make([]byte, unix.SizeofIfInfomsg)
		info[4], info[8], info[12] = 1, unix.IFF_UP, unix.IFF_UP
		_, err = c.Execute(netlink.Message{
			Header: netlink.Header{Type: unix.RTM_NEWLINK, Flags: netlink.Request | netlink.Acknowledge}, Data: info,
		})
		return err
	})
}
