package gather

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	securejoin "github.com/cyphar/filepath-securejoin"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/runtime"
)

type view struct {
	root string // empty if it is ours or unknown
	sure bool   // false if a missing file may exist for the process
}

func (v view) path(path string) string {
	if v.root == "" {
		return path
	}
	found, err := securejoin.SecureJoin(v.root, path)
	if err != nil {
		return filepath.Join(v.root, path)
	}
	return found
}

// folders resolves each directory once.
type folders struct {
	view
	at map[string]string
}

func (f folders) path(file string) string {
	dir := filepath.Dir(file)
	if f.at[dir] == "" {
		f.at[dir] = f.view.path(dir)
	}
	return filepath.Join(f.at[dir], filepath.Base(file))
}

func (v view) real(path string) string {
	found, err := filepath.EvalSymlinks(v.path(path))
	if v.root != "" || err != nil {
		found = "/" + strings.TrimLeft(strings.TrimPrefix(v.path(path), v.root), "/")
	}
	return found
}

var errUnseen = errors.New("it is not in this container, and the node's files cannot be seen from here: run cniscope " +
	"doctor on the node, or in a pod with hostPID: true and CAP_SYS_PTRACE")

// contained reports whether kubelet set its variable for pods (Kubernetes documentation, "Accessing the API
// from a Pod").
func contained() bool { return os.Getenv("KUBERNETES_SERVICE_HOST") != "" }

func theNode(contained bool) view {
	if !contained {
		return view{sure: true}
	}
	return viewOf(1, contained)
}

func begin(ctx context.Context, o fact.Options) *fact.Facts {
	f := &fact.Facts{Now: time.Now(), Contained: contained()}
	o.Address, f.Runtime.Value = seek(o.Address, view{}, theNode(f.Contained), func(address string) bool {
		ctx, cancel := context.WithTimeout(ctx, o.Patience/4)
		defer cancel()
		return speaksCRI(ctx, address)
	})
	f.Options = o
	return f
}

// seek takes the socket that serves CRI; Docker's containerd serves none. Without a visible socket it takes the
// installed runtime.
func seek(address string, here, node view, speaks func(address string) bool) (string, fact.Runtime) {
	if address != "" && address != runtime.DefaultAddress {
		return address, at(runtime.At(address))
	}
	present := runtime.Present(here.path)
	if len(present) > 0 {
		chosen := 0
		for i := range present {
			if len(present) > 1 && speaks(present[i].Socket) {
				chosen = i
				break
			}
		}
		r := at(present[chosen])
		for i, k := range present {
			if i != chosen {
				r.Others = append(r.Others, k.Socket)
			}
		}
		return present[chosen].Socket, r
	}
	if hidden := runtime.Present(node.path); node.root != "" && len(hidden) > 0 {
		r := at(hidden[0])
		r.Hidden = hidden[0].Socket
		return hidden[0].Socket, r
	}
	switch installed := runtime.Installed(node.path); {
	case len(installed) == 1:
		return installed[0].Socket, at(installed[0])
	case len(installed) == 0:
		return runtime.DefaultAddress, fact.Runtime{Absent: node.sure}
	}
	return runtime.DefaultAddress, fact.Runtime{}
}

func at(k runtime.Known) fact.Runtime { return fact.Runtime{Name: k.Name, Unit: k.Unit} }

func speaksCRI(ctx context.Context, address string) bool {
	f := &fact.Facts{Options: fact.Options{Address: address, Patience: time.Second}}
	conn, err := dial(f)
	if err != nil {
		return false
	}
	defer conn.Close()
	_, err = cri.NewRuntimeServiceClient(conn).Version(ctx, &cri.VersionRequest{})
	return err == nil
}
