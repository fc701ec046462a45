package fact

import (
	"cmp"
	"strings"
	"time"
)

// Runtime is the container runtime. Without an answer, Name and Unit are guessed by the socket.
type Runtime struct {
	Name    string // by CRI: "containerd", "cri-o", "docker" for cri-dockerd
	Version string
	PID     int // 0 if unknown
	Unit    string
	Plugins []RuntimePlugin // plugins of containerd
	// Began is when its socket was made, zero if unknown.
	Began time.Time
	// Absent means that the runtime is not installed and has no socket.
	Absent bool
	// Hidden is the path of its socket if that is outside our mount namespace.
	Hidden string
	Others []string
}

// RuntimePlugin is a plugin of containerd; Err is why it did not start.
type RuntimePlugin struct{ Type, ID, Err string }

// String returns "containerd v2.4.2", or the name alone.
func (r Runtime) String() string { return strings.TrimSpace(r.Called() + " " + r.Version) }

// Called is the name for people.
func (r Runtime) Called() string {
	switch {
	case r.CRIO():
		return "CRI-O"
	case r.Docker():
		return "cri-dockerd"
	case r.Name == "":
		return "the container runtime"
	}
	return r.Name
}

// Containerd reports containerd.
func (r Runtime) Containerd() bool { return r.Name == "containerd" }

// Containerd1 reports a containerd before 2.0.
func (r Runtime) Containerd1() bool {
	return r.Containerd() && strings.HasPrefix(strings.TrimPrefix(r.Version, "v"), "1.")
}

// CRIO reports CRI-O.
func (r Runtime) CRIO() bool { return r.Name == "cri-o" }

// Docker reports Docker with cri-dockerd.
func (r Runtime) Docker() bool { return r.Name == "docker" }

// Restart is the command for it.
func (r Runtime) Restart() string {
	return r.command("systemctl restart ", "", "restart the container runtime")
}

// Journal is the command that prints its log.
func (r Runtime) Journal() string {
	return r.command("journalctl -u ", " -e", "see the container runtime's log")
}

// Status is the command that prints its state.
func (r Runtime) Status() string {
	return r.command("systemctl status ", "", "start the container runtime")
}

func (r Runtime) command(before, after, unknown string) string {
	if unit := r.unit(); unit != "" {
		return before + unit + after
	}
	return unknown
}

func (r Runtime) unit() string {
	name := r.Name
	switch {
	case r.CRIO():
		name = "crio"
	case r.Docker():
		name = "cri-docker"
	}
	return Clean(cmp.Or(r.Unit, name))
}
