package fact

import (
	"cmp"
	"strings"
)

// Runtime is the container runtime. Name, Unit and PID are known, or guessed by its socket, also where it
// does not answer.
type Runtime struct {
	Name    string // what CRI's Version calls it: "containerd", "cri-o", of cri-dockerd "docker"; empty if unknown
	Version string
	PID     int             // who serves its socket; 0 if that is not known
	Unit    string          // of systemd, that it runs in
	Plugins []RuntimePlugin // of containerd
	// Absent: no socket of a runtime's is there, and nothing of one is installed.
	Absent bool
	// Hidden is its socket on the node, which is not in our mount namespace.
	Hidden string
	// Others are runtimes whose sockets are there, too.
	Others []string
}

// RuntimePlugin is one of containerd's plugins; Err is why it did not start.
type RuntimePlugin struct{ Type, ID, Err string }

// String is "containerd v2.4.2", without the version where nobody told it.
func (r Runtime) String() string { return strings.TrimSpace(r.Called() + " " + r.Version) }

// Called is the runtime's name for people.
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

// Containerd reports whether it is containerd.
func (r Runtime) Containerd() bool { return r.Name == "containerd" }

// CRIO reports whether it is CRI-O.
func (r Runtime) CRIO() bool { return r.Name == "cri-o" }

// Docker reports whether it is Docker, by cri-dockerd.
func (r Runtime) Docker() bool { return r.Name == "docker" }

// Restart is the command that restarts it.
func (r Runtime) Restart() string {
	if r.unit() == "" {
		return "restart the container runtime"
	}
	return "systemctl restart " + r.unit()
}

// Journal is the command that shows its log.
func (r Runtime) Journal() string {
	if r.unit() == "" {
		return "see the container runtime's log"
	}
	return "journalctl -u " + r.unit() + " -e"
}

// Status is the command that shows whether it runs.
func (r Runtime) Status() string {
	if r.unit() == "" {
		return "start the container runtime"
	}
	return "systemctl status " + r.unit()
}

// unit is empty where nothing is known of the runtime.
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
