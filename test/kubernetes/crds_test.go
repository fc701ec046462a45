//go:build linux

package kubernetes

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/cniscope/cniscope/test/harness"
)

var crds = map[string][]string{
	"github.com/prometheus-operator/prometheus-operator": {
		"example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
	},
	"github.com/openshift/api": {
		"payload-manifests/crds/0000_03_config-operator_01_securitycontextconstraints.crd.yaml",
	},
}

func (c *cluster) define() {
	c.Helper()
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	var names []string
	for module, files := range crds {
		dir := c.module(module)
		for _, file := range files {
			text := harness.Must(os.ReadFile(filepath.Join(dir, file)))(c)
			made := harness.Must(c.api.Do(c.ctx, "POST", definitions, text))(c)
			var o object
			harness.Check(c, json.Unmarshal(made.Body, &o))
			names = append(names, o.Text("metadata", "name"))
		}
	}
	for _, name := range names {
		harness.Eventually(c, func() error {
			var o struct {
				Status struct {
					Conditions []struct{ Type, Status, Message string }
				}
			}
			if err := c.api.Get(c.ctx, definitions+"/"+name, &o); err != nil {
				return err
			}
			for _, condition := range o.Status.Conditions {
				if condition.Type == "Established" && condition.Status == "True" {
					return nil
				}
			}
			return fmt.Errorf("%s is not served: %+v", name, o.Status.Conditions)
		})
	}
}

func (c *cluster) module(path string) string {
	c.Helper()
	cmd := exec.CommandContext(c.ctx, "go", "mod", "download", "-json", path)
	cmd.Dir = "../tools/crds"
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		c.Fatalf("go mod download %s: %v\n%s", path, err, out)
	}
	var m struct{ Dir string }
	harness.Check(c, json.Unmarshal(out, &m))
	return m.Dir
}
