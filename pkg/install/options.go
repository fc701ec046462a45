package install

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/cniscope/cniscope/pkg/disk"
)

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
	// ContainerdConfig is the main file of containerd's configuration; empty: where it usually is.
	ContainerdConfig string `json:"containerd_config,omitempty"`
	// ContainerdVersion is set if it cannot be found out. The next installation uses it if containerd does not answer.
	ContainerdVersion string `json:"containerd_version,omitempty"`
	// Tracing is the endpoint to which cniscope up to 0.2.0 had containerd export its own spans.
	Tracing string `json:"containerd_tracing,omitempty"`
	// EditConfig allows a line to be added to containerd's main file, if it does not import drop-ins.
	EditConfig bool `json:"edit_config,omitempty"`
	// NoContainerd leaves containerd's configuration alone.
	NoContainerd bool `json:"no_containerd,omitempty"`
}

// Options are what an installation is made with.
type Options struct {
	Choice
	Root    string  // the node's tree: / or the folder of an image
	Program string  // the file that is installed: cniscope itself
	Disk    disk.FS // what all of it is on; nil is the system's
}

func (o Options) config() string {
	return cmp.Or(o.ContainerdConfig, defaultConfig)
}

// Where cniscope's files go.
const (
	optionsFile  = "/etc/cniscope/cniscope.toml"
	unitFile     = "/etc/systemd/system/cniscope.service"
	enabledLink  = "/etc/systemd/system/multi-user.target.wants/cniscope.service"
	pluginName   = "90-cniscope"
	stateFolder  = "/var/lib/cniscope"
	manifestFile = stateFolder + "/install.json"
	// beforeFolder keeps files of others that cniscope up to 0.2.0 replaced, named by their digest.
	beforeFolder = stateFolder + "/before"
)

// manifest is what was installed: so that what somebody changed since is known, and all of
// it can be taken away again.
type manifest struct {
	Version int      `json:"version"` // of the manifest's form
	Choice  Choice   `json:"choice"`
	Files   []entry  `json:"files"`
	Folders []string `json:"folders,omitempty"` // those that were made, from the top
	// Unfinished is set while files are changed, for whoever comes after a crash: what may be there of a file
	// besides what Files says, by path, as a digest; "" is nothing.
	Unfinished map[string]string `json:"unfinished,omitempty"`
}

const manifestVersion = 1

type entry struct {
	Path   string `json:"path"`
	Digest string `json:"digest,omitempty"` // of what was written
	Before string `json:"before,omitempty"` // digest of what cniscope up to 0.2.0 replaced, and kept
	// Insertion is set instead of Digest where a file of somebody else's was added to.
	Insertion *insertion `json:"insertion,omitempty"`
}

// manifest reads what is installed; one without files if nothing is.
func (t tree) manifest() (*manifest, error) {
	m := &manifest{Version: manifestVersion}
	c, err := t.read(manifestFile)
	if err != nil {
		return nil, fmt.Errorf("reading what is installed: %w", err)
	}
	if c == nil {
		return m, nil
	}
	if err := json.Unmarshal(c.data, m); err != nil {
		return nil, fmt.Errorf("%s: %w; if you take it away, cniscope takes what is installed for files of yours", manifestFile, err)
	}
	if m.Version != manifestVersion {
		return nil, fmt.Errorf("%s was written by a newer cniscope: use that one", manifestFile)
	}
	return m, nil
}

func (m *manifest) entry(path string) (entry, bool) {
	i := slices.IndexFunc(m.Files, func(e entry) bool { return e.Path == path })
	if i < 0 {
		return entry{}, false
	}
	return m.Files[i], true
}

// halfDone reports whether what is at path is there since a change of it has not come about, or has.
func (m *manifest) halfDone(path string, now *content) bool {
	was, unfinished := m.Unfinished[path]
	return unfinished && now.digest() == was
}

func (m *manifest) content() *content {
	text, _ := json.MarshalIndent(m, "", "  ") // strings and numbers: it cannot fail
	return &content{data: append(text, '\n'), mode: 0o600}
}

// Remembered returns what was chosen at the last installation below root, and whether there was one.
func Remembered(root string) (Choice, bool, error) {
	m, err := newTree(root, nil).manifest()
	if err != nil {
		return Choice{}, false, err
	}
	return m.Choice, len(m.Files) > 0, nil
}
