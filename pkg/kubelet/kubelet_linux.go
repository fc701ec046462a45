// Package kubelet finds the kubelet's API server, which needs no service network.
package kubelet

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/disk"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

var errNone = errors.New("no kubelet with a kubeconfig runs on this node")

// APIServer returns host:port in the kubelet's kubeconfig. Pods can run a program of that name, so only processes
// trusted as runtimes count (docs/trust.md).
func APIServer() (string, error) {
	pids, err := procfs.All()
	if err != nil {
		return "", err
	}
	err = errNone
	memory := procfs.NewMemory()
	for _, pid := range pids {
		file, unseen := procfs.Executable(pid)
		if unseen != nil || filepath.Base(file) != "kubelet" || !anchor.Privileged(pid) {
			continue
		}
		arguments, _ := memory.Arguments(pid)
		config := kubeconfigIn(arguments)
		if !filepath.IsAbs(config) {
			continue
		}
		path, failed := securejoin.SecureJoin(procfs.Root(pid), config)
		server := ""
		if failed == nil {
			server, failed = ServerIn(path)
		}
		if server != "" {
			return server, nil
		}
		err = fmt.Errorf("kubelet (pid %d): %w", pid, cmp.Or(failed, errors.New("its kubeconfig names no server")))
	}
	return "", err
}

func kubeconfigIn(arguments []string) (path string) {
	for i, a := range arguments {
		name, value, joined := strings.Cut(strings.TrimLeft(a, "-"), "=")
		switch {
		case name != "kubeconfig" || !strings.HasPrefix(a, "-"):
		case joined:
			path = value
		case i+1 < len(arguments):
			path = arguments[i+1]
		}
	}
	return path
}

// serverLine matches only the API server: other parts may be secret.
var serverLine = regexp.MustCompile(`(?m)^[\s-]*"?server"?:\s*"?(https?://[^\s",]+)`)

// ServerIn returns a kubeconfig's host:port, or "".
func ServerIn(file string) (string, error) {
	content, err := disk.ReadRegular(disk.System(), file, 1<<20)
	return serverOf(string(content)), err
}

func serverOf(config string) string {
	found := serverLine.FindStringSubmatch(config)
	if found == nil {
		return ""
	}
	u, err := url.Parse(found[1])
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return text.Clean(net.JoinHostPort(u.Hostname(), port), text.Bound)
}
