package install

import "fmt"

// As is how containerd and cniscope come together.
type As string

// Service is a systemd unit that connects to containerd: it survives containerd, and its
// log goes to the journal. Plugin is started by containerd.
const (
	Service As = "service"
	Plugin  As = "plugin"
)

// Choice is what can be chosen, and is remembered from one installation to the next.
type Choice struct {
	As As `json:"as"`
	// ContainerdConfig is the main file of containerd's configuration; empty: where it
	// usually is.
	ContainerdConfig string `json:"containerd_config,omitempty"`
	// ContainerdVersion is set where it cannot be found out. What was told before counts
	// for as long as containerd itself says nothing.
	ContainerdVersion string `json:"containerd_version,omitempty"`
	// Tracing is where containerd exports its own spans to; empty: left as it is.
	Tracing string `json:"containerd_tracing,omitempty"`
	// EditConfig allows a line to be added to containerd's main file, if it does not import
	// drop-ins.
	EditConfig bool `json:"edit_config,omitempty"`
	// NoContainerd leaves containerd's configuration alone.
	NoContainerd bool `json:"no_containerd,omitempty"`
}

// Options are what an installation is made with.
type Options struct {
	Choice
	// Root is the folder that the node's tree is in: / or that of an image.
	Root string
	// Program is the file that is installed: cniscope itself.
	Program string
	// RestartContainerd has it restarted if that is needed.
	RestartContainerd bool
}

func (o Options) check(t tree) error {
	if o.As != Service && o.As != Plugin {
		return fmt.Errorf("--as %s: want %s or %s", o.As, Service, Plugin)
	}
	return o.checkRestart(t)
}

func (o Options) checkRestart(t tree) error {
	if o.RestartContainerd {
		if !t.live() {
			return fmt.Errorf("--restart-containerd: no containerd runs in %s", t.root)
		}
		if !systemdRuns() {
			return fmt.Errorf("--restart-containerd: systemd does not run here: restart containerd in your own way")
		}
	}
	return nil
}

// config is the main file of containerd's configuration.
func (o Options) config() string {
	if o.ContainerdConfig != "" {
		return o.ContainerdConfig
	}
	return defaultConfig
}
