package gather

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/containerd/containerd/api/services/containers/v1"
	"github.com/containerd/containerd/api/services/namespaces/v1"
	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/leak"
	"github.com/cniscope/cniscope/pkg/runtime"
)

const (
	// Files: far more than a node's pods; all addresses of a /18.
	resultsMax, leasesMax = 4096, 16384
	// Bytes: a result has about 2 KB; a lease is an id and an interface.
	resultMax, leaseMax = 256 << 10, 512
)

var resultFolders = []string{"/var/lib/cni/results", "/var/lib/cni/cache/results", multusResults}

const (
	multusResults = "/var/lib/cni/multus/results"
	addMost       = 10 * time.Second
)

func leaseFolders(f *fact.Facts) []string {
	dirs := []string{"/var/lib/cni/networks"}
	for _, d := range dataDirs(f) {
		if d = filepath.Clean(d); !slices.Contains(dirs, d) {
			dirs = append(dirs, d)
		}
	}
	return dirs
}

// Held gathers what sandboxes hold, and which exist.
func Held(ctx context.Context, o fact.Options) *fact.Facts {
	f := begin(ctx, o)
	withRuntime(ctx, f, func(conn *grpc.ClientConn, client cri.RuntimeServiceClient) {
		askFolder(ctx, f, client)
		f.Held.Value, f.Held.Err = held(ctx, f, conn, client)
	})
	return f
}

// held reads files before it lists sandboxes, so new ones are in no file, then removes what was freed.
func held(ctx context.Context, f *fact.Facts, conn *grpc.ClientConn, client cri.RuntimeServiceClient) (l leak.Look,
	err error,
) {
	sees := viewOf(f.Runtime.Value.PID, f.Contained)
	l = leak.Look{Time: time.Now(), Boot: bootTime(), Alive: map[string]bool{}, Total: map[string]int{}}
	if err := readLeases(ctx, sees, leaseFolders(f), &l); err != nil {
		return l, err
	}
	results, err := resultFiles(sees, &l)
	if err != nil {
		return l, err
	}
	answer, err := client.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		return l, fmt.Errorf("cannot list the sandboxes: %w", err)
	}
	running := map[string]bool{}
	for _, s := range answer.GetItems() {
		l.Alive[s.GetId()] = true
		running[s.GetId()] = s.GetState() == cri.PodSandboxState_SANDBOX_READY
	}
	for _, a := range readResults(sees, results) {
		switch {
		case a.ContainerID == "":
			for id := range l.Alive {
				if strings.Contains(filepath.Base(a.File), "-"+id+"-") {
					a.ContainerID = id
					l.Damaged = append(l.Damaged, a)
				}
			}
		case !l.Alive[a.ContainerID]:
			l.Cached = append(l.Cached, a)
		case running[a.ContainerID]:
			l.Living = append(l.Living, a)
		case filepath.Dir(a.File) != multusResults && a.IfName != "lo":
			l.Stopped = append(l.Stopped, a)
		}
	}
	if len(l.Leaked(f.Options.Leak)) > 0 || len(l.Attachments(nil, f.Options.Leak)) > 0 {
		if err := others(ctx, f, conn, l.Alive); err != nil {
			return l, err
		}
	}
	still := func(file string) bool {
		_, err := os.Lstat(sees.path(file))
		return err == nil
	}
	undone := func(a leak.Attachment) bool { return !still(a.File) }
	l.Cached, l.Stopped = slices.DeleteFunc(l.Cached, undone), slices.DeleteFunc(l.Stopped, undone)
	l.Damaged = slices.DeleteFunc(l.Damaged, undone)
	l.Leases = slices.DeleteFunc(l.Leases, func(one leak.Lease) bool {
		return !l.Alive[one.ContainerID] && !still(one.File)
	})
	return l, nil
}

// others adds containers with a network of their own: containerd's in all namespaces, also by nerdctl's names, and
// those with a process.
func others(ctx context.Context, f *fact.Facts, conn *grpc.ClientConn, alive map[string]bool) error {
	if f.Runtime.Value.Containerd() {
		all, err := namespaces.NewNamespacesClient(conn).List(ctx, &namespaces.ListNamespacesRequest{})
		if err != nil {
			return fmt.Errorf("cannot list containerd's namespaces: %w", err)
		}
		for _, n := range all.GetNamespaces() {
			if err := inNamespace(ctx, conn, n.GetName(), alive); err != nil {
				return fmt.Errorf("cannot list containerd's containers in %s: %w", n.GetName(), err)
			}
		}
	}
	return bearers(alive)
}

// inNamespace reads a stream: one message may be too small.
func inNamespace(ctx context.Context, conn *grpc.ClientConn, name string, alive map[string]bool) error {
	listed, err := containers.NewContainersClient(conn).ListStream(runtime.InNamespace(ctx, name),
		&containers.ListContainersRequest{})
	if err != nil {
		return err
	}
	for {
		c, err := listed.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		id := c.GetContainer().GetID()
		alive[id], alive[name+"-"+id] = true, true
	}
}

func list(sees view, dir string, most int) ([]string, error) {
	folder, err := openFolder(sees.path(dir))
	switch {
	case errors.Is(err, fs.ErrNotExist) && !sees.sure:
		return nil, fmt.Errorf("%s: %w", dir, errUnseen)
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(most) // an error if it is empty
	slices.Sort(names)
	return names, nil
}

func readLeases(ctx context.Context, sees view, dirs []string, l *leak.Look) error {
	left, in := leasesMax, folders{sees, map[string]string{}}
	for _, dir := range dirs {
		networks, err := list(sees, dir, resultsMax)
		if err != nil {
			return fmt.Errorf("cannot read host-local's leases: %w", err)
		}
		for _, network := range networks {
			if !leak.Named(network) {
				continue
			}
			files, _ := list(sees, filepath.Join(dir, network), leasesMax) // fails for a file
			for _, name := range files {
				address, err := netip.ParseAddr(name)
				if err != nil {
					continue // the lock, or the last leased address
				}
				l.Total[network]++
				if left--; left < 0 {
					l.More++
					continue
				}
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if one, ok := leaseOf(in, filepath.Join(dir, network, name)); ok {
					one.Network, one.Address = network, address.String()
					l.Leases = append(l.Leases, one)
				}
			}
		}
	}
	return nil
}

func leaseOf(in folders, file string) (one leak.Lease, ok bool) {
	text, since, err := readPlain(in.path(file), leaseMax)
	if err != nil {
		return one, false
	}
	id, ifName, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	one = leak.Lease{ContainerID: strings.TrimSpace(id), IfName: strings.TrimSpace(ifName), Since: since, File: file}
	return one, leak.Named(one.ContainerID) && (one.IfName == "" || leak.Interface(one.IfName)) && leak.Plain(file)
}

func resultFiles(sees view, l *leak.Look) (files []string, err error) {
	for _, dir := range resultFolders {
		names, err := list(sees, dir, resultsMax)
		if err != nil {
			return nil, fmt.Errorf("cannot read libcni's results: %w", err)
		}
		for _, name := range names {
			files = append(files, filepath.Join(dir, name))
		}
	}
	if len(files) > resultsMax {
		l.More += len(files) - resultsMax
		files = files[:resultsMax]
	}
	_, err = os.Stat(sees.path(resultFolders[0]))
	l.Complete = err == nil && l.More == 0
	return files, nil
}

func readResults(sees view, files []string) (all []leak.Attachment) {
	in := folders{sees, map[string]string{}}
	for _, file := range files {
		text, since, err := readPlain(in.path(file), resultMax)
		if err != nil {
			continue
		}
		a, ok := resultOf(text)
		damaged := !ok && !json.Valid(text) && time.Since(since) > addMost && filepath.Dir(file) != multusResults
		if (ok || damaged) && leak.Plain(file) {
			a.Since, a.File = since, file
			all = append(all, a)
		}
	}
	return all
}

type cached struct {
	Kind        string      `json:"kind"`
	ContainerID string      `json:"containerId"`
	IfName      string      `json:"ifName"`
	NetworkName string      `json:"networkName"`
	NetNS       string      `json:"netns"`
	Args        [][2]string `json:"cniArgs"`
	Config      []byte      `json:"config"`
	Capability  struct {
		Ports []struct {
			HostPort int `json:"hostPort"`
		} `json:"portMappings"`
	} `json:"capabilityArgs"`
	Result struct {
		IPs []struct {
			Address string `json:"address"`
		} `json:"ips"`
		Interfaces []struct {
			Name    string `json:"name"`
			MAC     string `json:"mac"`
			Sandbox string `json:"sandbox"`
		} `json:"interfaces"`
	} `json:"result"`
}

const addressesMax, linksMax = 4, 8

func resultOf(text []byte) (a leak.Attachment, ok bool) {
	var c cached
	if json.Unmarshal(text, &c) != nil || c.Kind != "cniCacheV1" || !leak.Named(c.ContainerID) ||
		!leak.Named(c.NetworkName) || !leak.Interface(c.IfName) {
		return a, false
	}
	a = leak.Attachment{
		ContainerID: c.ContainerID, Network: c.NetworkName, IfName: c.IfName, Pod: podOf(c.Args), Set: chainsOf(&c),
		NetNS: c.NetNS,
	}
	for _, ip := range c.Result.IPs[:min(len(c.Result.IPs), addressesMax)] {
		a.Addresses = append(a.Addresses, fact.Clean(ip.Address))
	}
	for _, i := range c.Result.Interfaces[:min(len(c.Result.Interfaces), linksMax)] {
		if a.NetNS = cmp.Or(a.NetNS, i.Sandbox); i.Sandbox == "" {
			a.Links = append(a.Links, i.Name)
		} else if mac, err := net.ParseMAC(i.MAC); err == nil {
			a.MACs = append(a.MACs, mac.String())
		}
	}
	return a, true
}

func podOf(args [][2]string) (p event.Pod) {
	for _, kv := range args {
		switch kv[0] {
		case "K8S_POD_NAMESPACE":
			p.Namespace = fact.Clean(kv[1])
		case "K8S_POD_NAME":
			p.Name = fact.Clean(kv[1])
		case "K8S_POD_UID":
			p.UID = fact.Clean(kv[1])
		}
	}
	return p
}
