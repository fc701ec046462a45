// Package kubelet finds the kubelet's API server, which needs no service network, and its DNS.
package kubelet

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
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

// files returns the file that each kubelet's flag names. Pods can run a program of that name, so only processes
// trusted as runtimes count (docs/trust.md).
func files(flag string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		pids, _ := procfs.All()
		memory := procfs.NewMemory()
		for _, pid := range pids {
			file, unseen := procfs.Executable(pid)
			if unseen != nil || filepath.Base(file) != "kubelet" || !anchor.Privileged(pid) {
				continue
			}
			arguments, _ := memory.Arguments(pid)
			named := flagIn(arguments, flag)
			if !filepath.IsAbs(named) {
				continue
			}
			if path, err := securejoin.SecureJoin(procfs.Root(pid), named); err == nil && !yield(pid, path) {
				return
			}
		}
	}
}

// APIServer returns host:port in the kubelet's kubeconfig.
func APIServer() (string, error) {
	err := errNone
	for pid, path := range files("kubeconfig") {
		server, failed := ServerIn(path)
		if server != "" {
			return server, nil
		}
		err = fmt.Errorf("kubelet (pid %d): %w", pid, cmp.Or(failed, errors.New("its kubeconfig names no server")))
	}
	return "", err
}

// DNS returns pods' first DNS server and their domain, if any.
func DNS() (server, domain string) {
	for _, path := range files("config") {
		if content, err := disk.ReadRegular(disk.System(), path, 1<<20); err == nil {
			return dnsOf(string(content))
		}
	}
	return "", ""
}

var (
	serverOfDNS = regexp.MustCompile(`(?:^|[\s{,])"?clusterDNS"?:[\s["-]*([0-9a-fA-F.:]+)`)
	domainOfDNS = regexp.MustCompile(`(?:^|[\s{,])"?clusterDomain"?:\s*"?([\w.-]+)`)
)

func dnsOf(config string) (server, domain string) {
	if found := serverOfDNS.FindStringSubmatch(config); found != nil {
		server, domain = found[1], "cluster.local"
	}
	if found := domainOfDNS.FindStringSubmatch(config); found != nil && server != "" {
		domain = found[1]
	}
	return server, domain
}

func flagIn(arguments []string, flag string) (path string) {
	for i, a := range arguments {
		name, value, joined := strings.Cut(strings.TrimLeft(a, "-"), "=")
		switch {
		case name != flag || !strings.HasPrefix(a, "-"):
		case joined:
			path = value
		case i+1 < len(arguments):
			path = arguments[i+1]
		}
	}
	return path
}

// serverLine matches only the API server: other parts may be secret.
var serverLine = regexp.MustCompile(`(?m)(?:^[\s-]*|[{,]\s*)"?server"?:\s*"?(https?://[^\s",}]+)`)

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
