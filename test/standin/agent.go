//go:build linux

package standin

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/structpb"
)

type agent struct {
	*stage
	db, vswitch *stream
	mu          sync.Mutex
	links       map[string]int // host interfaces, by container
}

type cniCall struct {
	settings
	container, netns, ifname, args, path string
	conf                                 []byte
	port                                 string
}

func serveAgent() error {
	s, err := newStage(Agent)
	if err != nil {
		return err
	}
	a := &agent{stage: s, links: map[string]int{}}
	for key, to := range map[string]**stream{databaseKey: &a.db, switchKey: &a.vswitch} {
		c, err := dial(os.Getenv(key))
		if err != nil {
			return err
		}
		go func() { _ = c.read(func(message) {}) }()
		*to = c
	}
	if os.Getenv(monitorKey) != "" {
		if _, err := a.db.ask("monitor", row{}); err != nil {
			return err
		}
	}
	path := AgentSocket(os.Getenv(dirKey))
	_ = os.Remove(path) // left by the previous one
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	if every, err := time.ParseDuration(os.Getenv(everyKey)); err == nil {
		go a.periodically(every)
	}
	g := grpc.NewServer()
	g.RegisterService(&grpc.ServiceDesc{ServiceName: service, HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{
		{MethodName: "CmdAdd", Handler: handler(a.add)}, {MethodName: "CmdDel", Handler: handler(a.del)},
	}}, nil)
	fmt.Println("ready")
	return g.Serve(l)
}

// AgentSocket is an agent's socket by its directory.
func AgentSocket(dir string) string { return filepath.Join(dir, "agent.sock") }

func (a *agent) periodically(every time.Duration) {
	for range time.Tick(every) {
		_ = a.run("", Periodic)
	}
}

func handler(do func(*cniCall) (string, error)) func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) {
	return func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		request := &structpb.Struct{}
		if err := decode(request); err != nil {
			return nil, err
		}
		field := func(name string) string { return request.Fields[name].GetStringValue() }
		c := &cniCall{
			container: field("container_id"), netns: field("netns"), ifname: field("ifname"),
			args: field("args"), path: field("path"), conf: []byte(field("network_configuration")),
		}
		if err := json.Unmarshal(c.conf, &c.settings); err != nil {
			return nil, err
		}
		c.port = PortOf(c.container)
		result, err := do(c)
		if err != nil {
			return nil, err
		}
		return structpb.NewStruct(map[string]any{"result": result})
	}
}

// PortOf returns a container's port and host interface, derived from a hash.
func PortOf(container string) string {
	sum := sha1.Sum([]byte(container))
	return "vs-" + hex.EncodeToString(sum[:])[:8]
}

func (a *agent) add(c *cniCall) (result string, err error) {
	err = a.during(Entry{Container: c.container, What: "call", Name: "ADD"}, func() error {
		result, err = a.addSteps(c)
		return err
	})
	go a.behind(c)
	return result, err
}

func (a *agent) addSteps(c *cniCall) (string, error) {
	if err := a.at("agent.begin", c.Inject, c.container); err != nil {
		return "", err
	}
	leased, err := a.delegate(c, "ADD")
	if err != nil {
		return "", err
	}
	if err := a.at("agent.ipam", c.Inject, c.container); err != nil {
		return "", err
	}
	if err := a.connect(c, leased); err != nil {
		return "", err
	}
	if err := a.at("agent.link", c.Inject, c.container); err != nil {
		return "", err
	}
	if err := a.at("agent.lock", c.Inject, c.container); err != nil {
		return "", err
	}
	if err := lockFile(lockPath()); err != nil {
		return "", err
	}
	port := row{Op: "insert", Port: c.port, Container: c.container, Inject: c.Inject}
	if err := a.at("agent.port", c.Inject, c.container); err != nil {
		return "", err
	}
	if err := a.tell(a.db, Database, "transact", port); err != nil {
		return "", err
	}
	port.Op = "wait" // until the switch has assigned a number
	if err := a.tell(a.db, Database, "transact", port); err != nil {
		return "", err
	}
	if err := a.at("agent.flows", c.Inject, c.container); err != nil {
		return "", err
	}
	if err := a.tell(a.vswitch, Switch, "flows", port); err != nil {
		return "", err
	}
	return string(leased), a.at("agent.end", c.Inject, c.container)
}

func (a *agent) tell(to *stream, name, method string, r row) error {
	return a.during(Entry{Container: r.Container, What: "exchange", Name: name}, func() error {
		_, err := to.ask(method, r)
		return err
	})
}

// behind is work after the answer.
func (a *agent) behind(c *cniCall) {
	time.Sleep(5 * time.Millisecond)
	_ = a.at(Behind, c.Inject, c.container)
	_ = a.tell(a.db, Database, "transact", row{Op: "announce", Port: "", Container: c.container})
	_ = a.tell(a.vswitch, Switch, "flows", row{Container: c.container})
}

func (a *agent) del(c *cniCall) (string, error) {
	return "", a.during(Entry{Container: c.container, What: "call", Name: "DEL"}, func() error {
		if err := a.tell(a.db, Database, "transact", row{Op: "delete", Port: c.port, Container: c.container}); err != nil {
			return err
		}
		if err := a.disconnect(c); err != nil {
			return err
		}
		_, err := a.delegate(c, "DEL")
		return err
	})
}

// delegate runs the IPAM plugin, as the plugin would.
func (a *agent) delegate(c *cniCall, command string) ([]byte, error) {
	if c.IPAM.Type == "" {
		return nil, fmt.Errorf("no IPAM plugin is configured")
	}
	cmd := exec.Command(filepath.Join(c.path, c.IPAM.Type))
	cmd.Stdin = bytes.NewReader(c.conf)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	cmd.Env = append(os.Environ(), "CNI_COMMAND="+command, "CNI_CONTAINERID="+c.container, "CNI_NETNS="+c.netns,
		"CNI_IFNAME="+c.ifname, "CNI_ARGS="+c.args, "CNI_PATH="+c.path)
	e := Entry{Container: c.container, What: "delegate", Name: c.IPAM.Type, Start: Now()}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	e.PID = cmd.Process.Pid
	err := cmd.Wait()
	a.note(e)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", c.IPAM.Type, err, strings.TrimSpace(out.String()))
	}
	return out.Bytes(), nil
}
