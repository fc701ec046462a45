package runtime

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
)

// Known is a container runtime as one distribution has it.
type Known struct {
	Name   string // what CRI's Version calls it
	Unit   string // of systemd
	Socket string
}

// Containerd is what CRI's Version calls containerd, CRIO what it calls CRI-O and Docker what it calls cri-dockerd.
const (
	Containerd = "containerd"
	CRIO       = "cri-o"
	Docker     = "docker"
)

// known are the runtimes' sockets, in the order in which they are looked for.
func known() []Known {
	return []Known{
		{Containerd, "containerd", DefaultAddress},
		{Containerd, "k3s", "/run/k3s/containerd/containerd.sock"}, // RKE2's, too
		{CRIO, "crio", "/run/crio/crio.sock"},
		{Docker, "cri-docker", "/run/cri-dockerd.sock"},
		{Containerd, "k0sworker", "/run/k0s/containerd.sock"},
		{Containerd, "snap.microk8s.daemon-containerd", "/var/snap/microk8s/common/run/containerd.sock"},
	}
}

// Find returns the runtime's socket: address, if that is another one than containerd's default or is there;
// else the first of the known ones that is there, and address if none is.
func Find(address string) string {
	address = cmp.Or(address, DefaultAddress)
	if address != DefaultAddress {
		return address
	}
	for _, k := range known() {
		if _, err := os.Stat(k.Socket); err == nil {
			return k.Socket
		}
	}
	return address
}

// At guesses by its socket which runtime it is that does not answer.
func At(address string) Known {
	address = strings.TrimPrefix(strings.TrimPrefix(address, "unix://"), "/var")
	for _, k := range known() {
		if strings.TrimPrefix(k.Socket, "/var") == address {
			return k
		}
	}
	for _, k := range known() {
		if filepath.Base(k.Socket) == filepath.Base(address) {
			return Known{Name: k.Name, Unit: k.Unit, Socket: address}
		}
	}
	return Known{Socket: address}
}
