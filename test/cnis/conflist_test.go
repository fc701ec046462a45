//go:build linux

package cnis

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

func (n *node) conflist(file, name string, chain ...rig.Conf) {
	n.Helper()
	path := n.json("conflist", object{"cniVersion": "0.3.1", "name": name, "plugins": chain})
	harness.Check(n.T, harness.CopyFile(path, filepath.Join(n.rig.CNIConfDir(), file)))
}

func (n *node) json(name string, content any) string {
	n.Helper()
	text := harness.Must(json.Marshal(content))(n.T)
	return n.file(name, string(text))
}

func (n *node) ran(c *call, names ...string) {
	n.Helper()
	var all []string
	for _, x := range c.Below("run", "delegate") {
		all = append(all, x.Name)
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			n.Errorf("%s: no run %s among %s", c.Attrs["k8s.pod.name"], name, fmt.Sprint(all))
		}
	}
}
