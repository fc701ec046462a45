package gather

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/leak"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// Found looks at what a failed call needed. No name from a plugin's message opens a path.
func Found(ctx context.Context, o fact.Options, w event.Want) *event.Found {
	var wg sync.WaitGroup
	var found fact.Of[event.Found]
	find(ctx, &wg, &found, func(ctx context.Context) (event.Found, error) { return look(ctx, o, w) })
	wg.Wait()
	found.Value.Kind = w.Kind
	switch {
	case errors.Is(found.Err, context.DeadlineExceeded):
		found.Value.Unseen = "there was no answer in time"
	case found.Err != nil:
		found.Value.Unseen = fact.Foreign(found.Err.Error())
	}
	return &found.Value
}

var errUnnamed = errors.New("no configuration that the runtime has loaded names it")

func look(ctx context.Context, o fact.Options, w event.Want) (found event.Found, err error) {
	f := begin(ctx, o)
	switch sees := theNode(f.Contained); {
	case w.Kind == event.FoundModule:
		return module(sees, strings.Fields(w.Name))
	case w.Kind == event.FoundProcess && !sees.sure:
		return event.Found{Name: w.Name}, errUnseen
	case w.Kind == event.FoundProcess:
		found.Name = w.Name
		found.Absent, err = absent(ctx, w.Name)
		return found, err
	}
	f.Held.Err = fact.ErrSilent
	withRuntime(ctx, f, func(conn *grpc.ClientConn, client cri.RuntimeServiceClient) {
		if w.Kind == event.FoundImage {
			found.Absent, f.Held.Err = noSandboxImage(ctx, conn, f.Runtime.Value)
			return
		}
		askFolder(ctx, f, client)
		if w.Kind == event.FoundLeases {
			f.Held.Value, f.Held.Err = held(ctx, f, conn, client)
		}
	})
	sees := viewOf(f.Runtime.Value.PID, f.Contained)
	switch w.Kind {
	case event.FoundLeases:
		return leases(f, w.Network), f.Held.Err
	case event.FoundImage:
		return found, f.Held.Err
	case event.FoundToken:
		return token(sees, cmp.Or(named(f.CRI.Value.Loaded, w), w.Name))
	}
	found.Name = cmp.Or(w.Name, named(f.CRI.Value.Loaded, w))
	if !leak.Interface(found.Name) {
		return event.Found{}, errUnnamed
	}
	return found, attached(sees, &found)
}

func noSandboxImage(ctx context.Context, conn *grpc.ClientConn, r fact.Runtime) (bool, error) {
	if !r.Containerd() || strings.TrimPrefix(r.Version, "v") < "2" {
		return false, nil
	}
	all, err := cri.NewImageServiceClient(conn).ListImages(ctx, &cri.ListImagesRequest{})
	return err == nil && !slices.ContainsFunc(all.GetImages(), (*cri.Image).GetPinned), err
}

func absent(ctx context.Context, name string) (bool, error) {
	pids, err := procfs.All()
	for _, pid := range pids {
		if stat, err := procfs.StatOf(pid); err == nil && stat.Name == name && !stat.Zombie() {
			return false, nil
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
	return err == nil, err
}

func named(loaded []fact.Loaded, w event.Want) string {
	for _, l := range loaded {
		switch {
		case w.Network != "" && l.Name != w.Network:
		case w.Kind == event.FoundToken && len(l.Kubeconfigs) > 0:
			return l.Kubeconfigs[0]
		case w.Kind == event.FoundMaster && len(l.Masters) > 0:
			return l.Masters[0]
		case w.Kind == event.FoundMaster, w.Kind == event.FoundToken:
		case len(l.Bridges) > 0:
			return l.Bridges[0]
		case slices.Contains(l.Delegates, "bridge") ||
			slices.ContainsFunc(l.Plugins, func(p event.Plugin) bool { return p.Type == "bridge" }):
			return "cni0" // the plugin's default
		}
	}
	return ""
}

func leases(f *fact.Facts, network string) event.Found {
	l := f.Held.Value
	found := event.Found{Name: fact.Clean(network), Leased: l.Total[network]}
	for _, one := range l.Leaked(f.Options.Leak) {
		if one.Network == network {
			found.Stale++
		}
	}
	return found
}

// A distribution's index has 1 MB.
const modulesMax = 8 << 20

func module(sees view, names []string) (found event.Found, err error) {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return found, err
	}
	found.Kernel = fact.Clean(strings.TrimSpace(string(release)))
	const all = "/lib/modules"
	dir := filepath.Join(all, filepath.Base(found.Kernel))
	index := func(name string) string {
		content, _, _ := readPlain(sees.path(filepath.Join(dir, name)), modulesMax)
		return strings.ReplaceAll("\n"+string(content), "-", "_")
	}
	builtin, files := index("modules.builtin"), index("modules.dep")
	for _, name := range names {
		if !leak.Named(name) {
			return found, errUnnamed
		}
		found.Name, found.Module = name, event.ModuleAbsent
		file := "/" + strings.ReplaceAll(name, "-", "_") + ".ko"
		others, _ := list(sees, all, 1)
		_, missing := os.Stat(sees.path(dir))
		switch _, err := os.Stat("/sys/module/" + strings.ReplaceAll(name, "-", "_")); {
		case err == nil, strings.Contains(builtin, file):
			found.Module = event.ModuleLoaded
			continue
		case strings.Contains(files, file):
			found.Module = event.ModuleThere
		case errors.Is(missing, fs.ErrNotExist) && len(others) > 0:
			found.Module = event.ModuleRemoved
		case files == "\n": // it may be part of the kernel
			return found, errors.New("the running kernel's list of modules cannot be read")
		}
		break
	}
	return found, nil
}

const kubeconfigMax = 64 << 10

var (
	ofToken     = regexp.MustCompile(`(?m)^\s*(?:- )?"?token"?:\s*"?[\w-]+\.([\w-]+)\.`)
	ofTokenFile = regexp.MustCompile(`(?m)^\s*(?:- )?"?tokenFile"?:\s*"?(/[^"\s]+)`)
	inTokenFile = regexp.MustCompile(`^[\w-]+\.([\w-]+)\.`)
)

func token(sees view, file string) (found event.Found, err error) {
	found.Name = fact.Clean(filepath.Base(file))
	content, _, err := readPlain(sees.path(file), kubeconfigMax)
	if err != nil {
		return found, errors.New("its file cannot be read")
	}
	payload := ofToken.FindSubmatch(content)
	if other := ofTokenFile.FindSubmatch(content); payload == nil && other != nil {
		if content, _, err = readPlain(sees.path(string(other[1])), kubeconfigMax); err != nil {
			return found, errors.New("its file cannot be read")
		}
		payload = inTokenFile.FindSubmatch(content)
	}
	if payload == nil {
		return found, errors.New("its file has no JSON web token")
	}
	var claims struct {
		Exp json.Number `json:"exp"`
	}
	decoded, err := base64.RawURLEncoding.DecodeString(string(payload[1]))
	if err != nil || json.Unmarshal(decoded, &claims) != nil {
		return found, errors.New("its token cannot be decoded")
	}
	if claims.Exp == "" {
		return found, nil
	}
	at, err := claims.Exp.Float64()
	if err != nil || at <= 0 || at > 1<<33 {
		return found, errors.New("its token has no valid end")
	}
	found.Expires = int64(at)
	return found, nil
}
