package install

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/cniscope/cniscope/pkg/disk"
)

// As is how cniscope is started.
type As string

// Service is a systemd unit that connects to containerd: it survives containerd's restart and logs to the journal.
// containerd starts Plugin.
const (
	Service As = "service"
	Plugin  As = "plugin"
)

// Choice holds the options that the next installation reuses.
type Choice struct {
	As As `json:"as"`
	// ContainerdConfig is containerd's main file; empty for the default.
	ContainerdConfig string `json:"containerd_config,omitempty"`
	// ContainerdVersion is used if containerd does not answer.
	ContainerdVersion string `json:"containerd_version,omitempty"`
	// Tracing is the endpoint that cniscope up to 0.2.0 set for containerd's spans.
	Tracing string `json:"containerd_tracing,omitempty"`
	// EditConfig allows importing drop-ins in containerd's main file.
	EditConfig   bool `json:"edit_config,omitempty"`
	NoContainerd bool `json:"no_containerd,omitempty"`
}

// Options configure an installation.
type Options struct {
	Choice
	Root    string  // / or an image's directory
	Program string  // the file to install
	Disk    disk.FS // default: the system's
}

func (o Options) config() string {
	return cmp.Or(o.ContainerdConfig, defaultConfig)
}

const (
	optionsFile  = "/etc/cniscope/cniscope.toml"
	unitFile     = "/etc/systemd/system/cniscope.service"
	enabledLink  = "/etc/systemd/system/multi-user.target.wants/cniscope.service"
	pluginName   = "90-cniscope"
	stateFolder  = "/var/lib/cniscope"
	manifestFile = stateFolder + "/install.json"
	// beforeFolder holds files that cniscope up to 0.2.0 replaced, named by digest.
	beforeFolder = stateFolder + "/before"
)

type manifest struct {
	Version int      `json:"version"` // of the format
	Choice  Choice   `json:"choice"`
	Files   []entry  `json:"files"`
	Folders []string `json:"folders,omitempty"` // created, from the top
	// Unfinished is set during changes, for recovery after a crash: a file's other possible digest; "" means no file.
	Unfinished map[string]string `json:"unfinished,omitempty"`
}

const manifestVersion = 1

type entry struct {
	Path      string     `json:"path"`
	Digest    string     `json:"digest,omitempty"` // of the written content
	Before    string     `json:"before,omitempty"` // digest of the file that cniscope up to 0.2.0 replaced
	Insertion *insertion `json:"insertion,omitempty"`
}

func (t tree) manifest() (*manifest, error) {
	m := &manifest{Version: manifestVersion}
	c, err := t.read(manifestFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the list of installed files: %w", err)
	}
	if c == nil {
		return m, nil
	}
	if err := json.Unmarshal(c.data, m); err != nil {
		return nil, fmt.Errorf("%s: %w; if you remove it, cniscope treats its installed files as yours",
			manifestFile, err)
	}
	if m.Version != manifestVersion {
		return nil, fmt.Errorf("%s was written by a newer cniscope; use the newer version", manifestFile)
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

func (m *manifest) halfDone(path string, now *content) bool {
	was, unfinished := m.Unfinished[path]
	return unfinished && now.digest() == was
}

func (m *manifest) content() *content {
	text, _ := json.MarshalIndent(m, "", "  ") // strings and numbers cannot fail
	return &content{data: append(text, '\n'), mode: 0o600}
}

// Remembered returns the last installation's choice below root, and whether there is one.
func Remembered(root string) (Choice, bool, error) {
	m, err := newTree(root, nil).manifest()
	if err != nil {
		return Choice{}, false, err
	}
	return m.Choice, len(m.Files) > 0, nil
}
