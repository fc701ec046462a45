package install

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
)

// Where cniscope's files go.
const (
	program      = "/usr/local/bin/cniscope"
	optionsFile  = "/etc/cniscope/cniscope.toml"
	unitFile     = "/etc/systemd/system/cniscope.service"
	enabledLink  = "/etc/systemd/system/multi-user.target.wants/cniscope.service"
	tracingFile  = "/etc/systemd/system/containerd.service.d/90-cniscope.conf"
	pluginName   = "90-cniscope"
	stateFolder  = "/var/lib/cniscope"
	manifestFile = stateFolder + "/install.json"
	// beforeFolder keeps files of others that were replaced, named by their digest.
	beforeFolder = stateFolder + "/before"
)

// manifest is what was installed: so that what somebody changed since is known, and all of
// it can be taken away again.
type manifest struct {
	Version int     `json:"version"` // of the manifest's form
	Choice  Choice  `json:"choice"`
	Files   []entry `json:"files"`
	// Folders are those that were made, from the top.
	Folders []string `json:"folders,omitempty"`
}

const manifestVersion = 1

// entry is one file that was written.
type entry struct {
	Path string `json:"path"`
	// Digest is that of what was written.
	Digest string `json:"digest,omitempty"`
	// Before is the digest of what was replaced, and kept.
	Before string `json:"before,omitempty"`
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

func (m *manifest) content() *content {
	text, _ := json.MarshalIndent(m, "", "  ") // strings and numbers: it cannot fail
	return &content{data: append(text, '\n'), mode: 0o600}
}

// folderModes are those of folders that are not for everybody.
func folderModes() map[string]fs.FileMode {
	return map[string]fs.FileMode{stateFolder: 0o700, beforeFolder: 0o700}
}

// Remembered returns what was chosen at the last installation below root, and whether
// there was one.
func Remembered(root string) (Choice, bool, error) {
	m, err := tree{root}.manifest()
	if err != nil {
		return Choice{}, false, err
	}
	return m.Choice, len(m.Files) > 0, nil
}
