// Package gather finds the facts about a node, without changing anything.
package gather

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	goruntime "runtime"
	"sync"
	"time"

	introspection "github.com/containerd/containerd/api/services/introspection/v1"
	versionapi "github.com/containerd/containerd/api/services/version/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/kubelet"
	"github.com/cniscope/cniscope/pkg/leak"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/runtime"
)

// Facts finds all facts concurrently; a late answer is an error of its own fact.
func Facts(asked context.Context, o fact.Options) *fact.Facts {
	f := begin(asked, o)
	o = f.Options
	ctx, cancel := context.WithTimeout(asked, o.Patience)
	defer cancel()
	var wg, scope, firewall sync.WaitGroup
	find(ctx, &scope, &f.Scope, func(ctx context.Context) (fact.Scope, error) { return askScope(ctx, o.RunDir) })
	wg.Go(func() {
		containers := askRuntimeAll(ctx, f)
		// Without the runtime's answer other facts get as much time, because they may explain why.
		ctx, cancel := context.WithTimeout(asked, o.Patience)
		defer cancel()
		bins, data := f.CRI.Value.BinDirs, dataDirs(f)
		var behind sync.WaitGroup
		find(ctx, &behind, &f.Processes, func(ctx context.Context) ([]fact.Process, error) { return processes(ctx, bins) })
		find(ctx, &behind, &f.Locks, func(context.Context) ([]fact.Lock, error) { return heldLocks(data) })
		scope.Wait()
		find(ctx, &behind, &f.Agents, func(ctx context.Context) ([]fact.Agent, error) {
			return askAgents(ctx, f, viewOf(f.Runtime.Value.PID, false).root, containers)
		})
		firewall.Wait()
		find(ctx, &behind, &f.Gone, func(context.Context) ([]fact.Gone, error) { return goneFrom(f, &procfs.Residents{}) })
		behind.Wait()
	})
	find(ctx, &wg, &f.Kubelet, func(ctx context.Context) (fact.Health, error) { return askKubelet(ctx, o.Kubelet), nil })
	find(ctx, &wg, &f.DNS, askDNS)
	find(ctx, &wg, &f.Sent, func(ctx context.Context) (none struct{}, err error) {
		if o.Endpoint == "" || o.Send == nil {
			return none, nil
		}
		return none, o.Send(ctx)
	})
	find(ctx, &firewall, &f.Chains, Chains)
	find(ctx, &wg, &f.LB, loadBalancing)
	find(ctx, &wg, &f.Network, ownNetwork)
	find(ctx, &wg, &f.Forwarding, forwarding)
	find(ctx, &wg, &f.NRI, func(ctx context.Context) (fact.NRI, error) { return nriSocket(ctx, o) })
	find(ctx, &wg, &f.Kernel, kernelFeatures)
	find(ctx, &wg, &f.Clock, clockState)
	if f.OnWindows = goruntime.GOOS == "windows"; f.OnWindows {
		find(ctx, &wg, &f.HNS, stateOfHNS)
		find(ctx, &wg, &f.Pipes, allPipes)
		find(ctx, &wg, &f.Trial, try)
	}
	wg.Wait()
	firewall.Wait()
	for _, p := range f.Processes.Value {
		f.Kubelet.Value.Running = f.Kubelet.Value.Running || p.Name == "kubelet"
	}
	return f
}

// grace is the wait after the end of ctx, because a function's error says more.
const grace = 100 * time.Millisecond

// find abandons a function that ignores the end of ctx: reading a file of a process, or below its root, may block
// forever.
func find[T any](ctx context.Context, wg *sync.WaitGroup, into *fact.Of[T], how func(context.Context) (T, error)) {
	wg.Go(func() {
		found := make(chan fact.Of[T], 1)
		go func() {
			value, err := how(ctx)
			found <- fact.Of[T]{Value: value, Err: err}
		}()
		select {
		case *into = <-found:
			return
		case <-ctx.Done():
		}
		select {
		case *into = <-found:
		case <-time.After(grace):
			into.Err = fmt.Errorf("no answer in time: %w", ctx.Err())
		}
	})
}

func askScope(ctx context.Context, dir string) (s fact.Scope, err error) {
	if dir == "" {
		return s, control.ErrNotRunning
	}
	c := control.Client{Dir: dir}
	if s.Calls, err = c.Calls(ctx); err != nil {
		return s, err
	}
	if s.Recent, err = c.Recent(ctx); err != nil {
		return s, err
	}
	s.Node, err = c.Node(ctx)
	return s, err
}

func dataDirs(f *fact.Facts) (dirs []string) {
	for _, l := range f.CRI.Value.Loaded {
		dirs = append(dirs, l.DataDirs...)
	}
	return dirs
}

func askRuntimeAll(ctx context.Context, f *fact.Facts) []candidate {
	var candidates fact.Of[[]candidate]
	withRuntime(ctx, f, func(conn *grpc.ClientConn, client cri.RuntimeServiceClient) {
		var wg sync.WaitGroup
		known, whole := f.Runtime.Value, fact.Of[fact.Runtime]{Value: f.Runtime.Value}
		find(ctx, &wg, &whole, func(ctx context.Context) (fact.Runtime, error) { return askRuntime(ctx, conn, known) })
		find(ctx, &wg, &candidates, func(ctx context.Context) ([]candidate, error) { return askCandidates(ctx, client) })
		askFolder(ctx, f, client)
		asked := &fact.Facts{Options: f.Options, Contained: f.Contained, Runtime: f.Runtime, CRI: f.CRI}
		find(ctx, &wg, &f.Held, func(ctx context.Context) (leak.Look, error) { return held(ctx, asked, conn, client) })
		wg.Wait()
		f.Runtime = whole
		f.Containers = fact.Of[[]fact.Container]{Value: ofNetwork(candidates.Value, cniDirs(f)), Err: candidates.Err}
	})
	return candidates.Value
}

// Readiness gathers CRI's status, the CNI directory and, if it is empty, the containers that should write it.
func Readiness(ctx context.Context, o fact.Options) *fact.Facts {
	f := begin(ctx, o)
	withRuntime(ctx, f, func(_ *grpc.ClientConn, client cri.RuntimeServiceClient) {
		askFolder(ctx, f, client)
		if f.CRI.Err == nil && !f.CRI.Value.Network && len(f.Folder.Value.Networks) == 0 {
			candidates, err := askCandidates(ctx, client)
			f.Containers = fact.Of[[]fact.Container]{Value: ofNetwork(candidates, cniDirs(f)), Err: err}
			f.Processes.Value, f.Processes.Err = processes(ctx, f.CRI.Value.BinDirs)
		}
	})
	return f
}

// Step is Readiness, with the agents or the DNS.
func Step(ctx context.Context, o fact.Options, dns bool) *fact.Facts {
	f := Readiness(ctx, o)
	var wg sync.WaitGroup
	if dns {
		find(ctx, &wg, &f.DNS, askDNS)
	} else {
		find(ctx, &wg, &f.Agents, func(ctx context.Context) ([]fact.Agent, error) {
			return askAgents(ctx, f, viewOf(f.Runtime.Value.PID, false).root, nil)
		})
	}
	wg.Wait()
	return f
}

func withRuntime(ctx context.Context, f *fact.Facts, ask func(*grpc.ClientConn, cri.RuntimeServiceClient)) {
	conn, err := dial(f)
	if err != nil {
		f.Runtime.Err = err
		if !fact.Unasked(err) {
			err = fact.ErrSilent
		}
		f.CRI.Err, f.Containers.Err, f.Binaries.Err, f.Held.Err = err, err, err, err
		f.Folder.Value, f.Folder.Err = readFolder(theNode(f.Contained), f.Options.ConfDir, 1)
		return
	}
	defer conn.Close()
	client := cri.NewRuntimeServiceClient(conn)
	// The guess stays, and other questions get the remaining time.
	brief, cancel := context.WithTimeout(ctx, f.Options.Patience/3)
	defer cancel()
	v, silent := client.Version(brief, &cri.VersionRequest{})
	if silent == nil {
		f.Runtime.Value.Name, f.Runtime.Value.Version = fact.Clean(v.GetRuntimeName()), fact.Clean(v.GetRuntimeVersion())
	}
	ask(conn, client)
	// Version takes no lock of CRI.
	if status.Code(silent) == codes.DeadlineExceeded && f.CRI.Err != nil && len(f.Runtime.Value.Plugins) == 0 {
		f.Runtime.Err = cmp.Or(f.Runtime.Err, fmt.Errorf("cannot read its version: %w", silent))
	}
}

func askFolder(ctx context.Context, f *fact.Facts, client cri.RuntimeServiceClient) {
	f.CRI.Value, f.CRI.Err = askCRI(ctx, client, f.Runtime.Value, f.Options)
	dir, most := f.Options.ConfDir, 1
	if f.CRI.Err == nil {
		dir, most = f.CRI.Value.ConfDir, f.CRI.Value.MaxConf
	}
	sees := viewOf(f.Runtime.Value.PID, f.Contained)
	f.Folder.Value, f.Folder.Err = readFolder(sees, dir, most)
	if d := &f.Folder.Value; f.CRI.Err == nil && f.Folder.Err == nil && len(d.Networks)+len(d.Problems) == 0 {
		d.Elsewhere = elsewhere(sees, dir)
	}
	if f.CRI.Err == nil && !f.CRI.Value.Told {
		f.Folder.Value.Blocking = "" // one file stops only containerd
		f.CRI.Value.Loaded = loadedFrom(sees.path(dir), fact.Winners(f))
	}
	if f.Binaries.Err = cmp.Or(f.CRI.Err, f.Folder.Err); f.Binaries.Err == nil {
		f.Binaries.Value, f.Binaries.Err = programs(f, sees)
	}
}

func cniDirs(f *fact.Facts) []string {
	dirs := []string{f.Options.ConfDir}
	if f.CRI.Err == nil {
		dirs = append([]string{f.CRI.Value.ConfDir}, f.CRI.Value.BinDirs...)
	}
	return dirs
}

// dial fails at once if the socket is missing.
func dial(f *fact.Facts) (conn *grpc.ClientConn, err error) {
	o := f.Options
	socket, err := os.Stat(o.Address)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		f.Runtime.Value.Began = socket.ModTime()
	}
	if f.Runtime.Value.PID, err = reach(o.Address, o.Patience); err != nil {
		return nil, err
	}
	if unit := unitOf(f.Runtime.Value.PID); unit != "" {
		f.Runtime.Value.Unit = unit
	}
	return runtime.Dial(o.Address, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(answerMax)))
}

// answerMax is containerd's limit of a message (defaults.DefaultMaxRecvMsgSize).
const answerMax = 16 << 20

func askRuntime(ctx context.Context, conn *grpc.ClientConn, r fact.Runtime) (fact.Runtime, error) {
	if !r.Containerd() {
		return r, nil
	}
	v, err := versionapi.NewVersionClient(conn).Version(ctx, &emptypb.Empty{})
	if err != nil {
		return r, fmt.Errorf("cannot read its version: %w", err)
	}
	r.Version = fact.Clean(v.GetVersion())
	answer, err := introspection.NewIntrospectionClient(conn).Plugins(runtime.InNamespace(ctx, "k8s.io"),
		&introspection.PluginsRequest{})
	if err != nil {
		return r, fmt.Errorf("cannot list its plugins: %w", err)
	}
	for _, p := range answer.GetPlugins() {
		r.Plugins = append(r.Plugins, fact.RuntimePlugin{
			Type: fact.Clean(p.GetType()), ID: fact.Clean(p.GetID()),
			Err: fact.Clean(p.GetInitErr().GetMessage()),
		})
	}
	return r, nil
}

func askDNS(ctx context.Context) (d fact.DNS, err error) {
	server, domain := kubelet.DNS()
	if server == "" {
		return d, nil
	}
	d = fact.DNS{Server: fact.Clean(server), Name: fact.Clean("kubernetes.default.svc." + domain)}
	d.Err, d.Said = resolve(ctx, net.JoinHostPort(server, "53"), d.Name+".")
	return d, nil
}

func resolve(ctx context.Context, server, name string) (failed, said string) {
	ask := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server)
	}}
	_, err := ask.LookupHost(ctx, name)
	switch dns, is := errors.AsType[*net.DNSError](err); {
	case err == nil:
		return "", ""
	case is && (dns.IsNotFound || dns.Err == "server misbehaving" || dns.Err == "lame referral"):
		return "", fact.Clean(dns.Err)
	case is:
		return fact.Clean(dns.Err), ""
	}
	return fact.Clean(err.Error()), ""
}

func get(ctx context.Context, url string, dial func(ctx context.Context, network, address string) (net.Conn, error)) (
	*http.Response, error,
) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return (&http.Transport{DisableKeepAlives: true, DialContext: dial}).RoundTrip(request)
}

func askKubelet(ctx context.Context, address string) fact.Health {
	h := fact.Health{Address: fact.Clean(address)}
	answer, err := get(ctx, "http://"+address+"/healthz", nil)
	if err != nil {
		h.Err = fact.Foreign(err.Error(), address)
		return h
	}
	defer answer.Body.Close()
	// After 101 (Switching Protocols) net/http does not end the read with ctx.
	defer context.AfterFunc(ctx, func() { _ = answer.Body.Close() })()
	body, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10)) // also a partial answer
	h.Status, h.Body = answer.StatusCode, fact.Foreign(string(body))
	return h
}
