package release

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func validate(file string) (string, error) {
	out, err := exec.Command("../tools/bin/sbom-utility", "validate", "-i", file).CombinedOutput()
	return string(out), err
}

// examineSBOM checks the schema, that each linked module has its license, and the checksums of the programs.
func examineSBOM(t *testing.T, dir string) {
	file := filepath.Join(dir, "cniscope_"+number+"_sbom.cdx.json")
	if out, err := validate(file); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	text := harness.Must(os.ReadFile(file))(t)
	broken := filepath.Join(t.TempDir(), "broken.json")
	harness.Check(t, os.WriteFile(broken, []byte(strings.Replace(string(text), `"type": "library"`, `"type": "liberty"`, 1)), 0o644))
	if out, err := validate(broken); err == nil {
		t.Errorf("a wrong document is accepted:\n%s", out)
	}

	type component struct {
		Name, Version, Purl string
		Licenses            []struct{ License struct{ ID string } }
		Hashes              []struct{ Alg, Content string }
		Components          []component
	}
	var bom struct {
		SpecVersion, SerialNumber string
		Metadata                  struct{ Component component }
		Components                []component
		Dependencies              []struct {
			Ref       string
			DependsOn []string
		}
	}
	harness.Check(t, json.Unmarshal(text, &bom))
	versions := map[string]string{}
	for _, c := range bom.Components {
		versions[c.Name] = c.Version
		if len(c.Licenses) == 0 || c.Purl == "" {
			t.Errorf("%s %s: licenses %v, purl %q", c.Name, c.Version, c.Licenses, c.Purl)
		}
	}
	for _, program := range bom.Metadata.Component.Components {
		data := harness.Must(os.ReadFile(filepath.Join(dir, program.Name)))(t)
		if sum := fmt.Sprintf("%x", sha256.Sum256(data)); len(program.Hashes) != 1 || program.Hashes[0].Content != sum {
			t.Errorf("%s is %s, and the document says %v", program.Name, sum, program.Hashes)
		}
		info := harness.Must(buildinfo.ReadFile(filepath.Join(dir, program.Name)))(t)
		for _, m := range info.Deps {
			if versions[m.Path] != m.Version {
				t.Errorf("%s was linked with %s %s, and the document says %q", program.Name, m.Path, m.Version, versions[m.Path])
			}
		}
		if "go"+versions["stdlib"] != info.GoVersion {
			t.Errorf("compiled by %s, and the document says %q", info.GoVersion, versions["stdlib"])
		}
	}
	if len(bom.Metadata.Component.Components) != 2 || bom.Metadata.Component.Version != version {
		t.Errorf("it is about %+v", bom.Metadata.Component)
	}
	edges := 0
	for _, d := range bom.Dependencies {
		edges += len(d.DependsOn)
	}
	if len(bom.Dependencies) != len(bom.Components)+1 || edges <= len(bom.Dependencies) {
		t.Errorf("%d components, %d with dependencies, %d of these", len(bom.Components), len(bom.Dependencies), edges)
	}
}
