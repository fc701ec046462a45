package runtime

import (
	"cmp"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
)

// Known is a distribution's container runtime.
type Known struct {
	Name     string // in CRI's Version
	Unit     string // of systemd
	Socket   string
	programs []string
}

// Names in CRI's Version; Docker is cri-dockerd's.
const (
	Containerd = "containerd"
	CRIO       = "cri-o"
	Docker     = "docker"
)

func known() []Known {
	if goruntime.GOOS == "windows" {
		program := filepath.Join(os.Getenv("ProgramFiles"), `containerd\bin\containerd.exe`)
		return []Known{{Containerd, "containerd", DefaultAddress, []string{program}}}
	}
	usr := []string{"/usr/local/bin", "/usr/bin"}
	return []Known{
		{Containerd, "containerd", DefaultAddress, in("containerd", append(usr, "/usr/local/sbin", "/usr/sbin")...)},
		{Containerd, "k3s", "/run/k3s/containerd/containerd.sock", slices.Concat( // also RKE2's
			in("k3s", "/usr/local/bin", "/opt/bin", "/usr/bin"), in("rke2", "/usr/local/bin", "/opt/bin", "/usr/bin"))},
		{CRIO, "crio", "/run/crio/crio.sock", in("crio", usr...)},
		{Docker, "cri-docker", "/run/cri-dockerd.sock", in("cri-dockerd", usr...)},
		{Containerd, "k0sworker", "/run/k0s/containerd.sock", in("k0s", usr...)},
		{
			Containerd, "snap.microk8s.daemon-containerd", "/var/snap/microk8s/common/run/containerd.sock",
			in("microk8s", "/snap/bin"),
		},
	}
}

func in(name string, dirs ...string) (all []string) {
	for _, dir := range dirs {
		all = append(all, filepath.Join(dir, name))
	}
	return all
}

// Present returns runtimes whose sockets exist, by precedence. path maps the node's paths.
func Present(path func(string) string) []Known {
	return slices.DeleteFunc(known(), func(k Known) bool { return !there(path(k.Socket)) })
}

// Installed returns runtimes whose program exists, by precedence.
func Installed(path func(string) string) []Known {
	return slices.DeleteFunc(known(), func(k Known) bool {
		return !slices.ContainsFunc(k.programs, func(p string) bool { return there(path(p)) })
	})
}

// Sockets returns the known sockets.
func Sockets() (all []string) {
	for _, k := range known() {
		all = append(all, k.Socket)
	}
	return all
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Find returns address, or the first known socket if it is containerd's default and missing.
func Find(address string) string {
	address = cmp.Or(address, DefaultAddress)
	if address != DefaultAddress {
		return address
	}
	if present := Present(func(p string) string { return p }); len(present) > 0 {
		return present[0].Socket
	}
	return address
}

// At guesses the runtime from its socket.
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
